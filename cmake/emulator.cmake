# Kernels of a GPU that run on this processor: tools/cuda_compile.py compiles .cu files for the emulator
# (src/cuda_emulator). Only where has_emulator is YES.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# The path of the real interpreter: `python3` may be a script of pyenv, which takes as long as our script.
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)"
  OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# Compiles the .cu files of a target for the emulator. "--fast": without checks. "--trusted": without the search for
# code that could deceive the checker.
function(compile_for_emulator target)
  set(compile ${python} -B ${CMAKE_SOURCE_DIR}/tools/cuda_compile.py ${ARGN})
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${compile}" EXPORT_COMPILE_COMMANDS OFF)
  get_target_property(sources ${target} SOURCES)
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX
    OBJECT_DEPENDS "${CMAKE_SOURCE_DIR}/tools/cuda_check.py;${CMAKE_SOURCE_DIR}/tools/cuda_compile.py")
endfunction()

# The emulator stores a program counter in 31 bits, so its programs get low addresses.
function(link_emulator target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:emulator>)
  target_link_options(${target} PRIVATE -no-pie)
endfunction()
