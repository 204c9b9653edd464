# The CUDA backend: src/operators/cuda holds the kernels, src/backends/cuda what launches them. It is
# linked to a program together with one of two things that can run kernels: nvcc's runtime, or the
# emulator. Nothing of it is built unless a target asks for it.
file(GLOB cuda_kernels CONFIGURE_DEPENDS operators/cuda/*.cu)
add_library(cuda_backend OBJECT EXCLUDE_FROM_ALL ${cuda_backend_sources})
target_link_libraries(cuda_backend PRIVATE engine_headers stagecraft_flags)

# `stagecraft_cuda` is the program with --backend cuda: for GPUs from 8.0 on, with
# the runtime linked in, so that it starts where there is no driver and can say so.
option(STAGECRAFT_CUDA "Build stagecraft_cuda, which needs nvcc" OFF)
if(STAGECRAFT_CUDA)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  add_library(compiled_kernels OBJECT ${cuda_kernels})
  target_include_directories(compiled_kernels PRIVATE . cuda_emulator/include)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  set_target_properties(compiled_kernels PROPERTIES CUDA_STANDARD 20 CUDA_EXTENSIONS OFF
    CUDA_ARCHITECTURES "80;90")
  add_executable(stagecraft_cuda ${program_objects}
    $<TARGET_OBJECTS:cuda_backend> $<TARGET_OBJECTS:compiled_kernels>)
  target_link_libraries(stagecraft_cuda PRIVATE engine stagecraft_flags PkgConfig::libedit
    CUDA::cudart_static)
endif()

# `stagecraft_cuda_emulator` is the program with --backend cuda-emulator. The kernels are compiled as
# C++ and optimised; the checker, which needs them otherwise, is used by the tests.
if(has_emulator)
  add_subdirectory(cuda_emulator)
  add_executable(stagecraft_cuda_emulator EXCLUDE_FROM_ALL ${program_objects}
    $<TARGET_OBJECTS:cuda_backend> $<TARGET_OBJECTS:emulated_kernels>
    $<TARGET_OBJECTS:emulator>)
  target_link_libraries(stagecraft_cuda_emulator PRIVATE engine stagecraft_flags PkgConfig::libedit)
  # The emulator reads the program's symbols, at the addresses at which the linker puts them.
  target_link_options(stagecraft_cuda_emulator PRIVATE -no-pie)
else()  # ./stage asks for it where --backend cuda-emulator is given
  add_custom_target(stagecraft_cuda_emulator
    ${CMAKE_COMMAND} -E echo "--backend cuda-emulator: expected Linux and GCC 12 or newer, found another system or compiler"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
