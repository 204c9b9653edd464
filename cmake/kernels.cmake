# The kernels: one source, compiled once for each instruction set. Named feature by feature, because
# GCC 12 has no -march=znver4; which of them runs is decided when the program starts.
set(kernels ${CMAKE_SOURCE_DIR}/src/operators/kernels)

function(kernel_flags isa)
  set(flags ${ARGN} -fno-math-errno)
  # GCC 12 takes the undefined upper half of its own intrinsics for a variable nobody set.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND flags -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  set_source_files_properties(${kernels}/${isa}.cpp TARGET_DIRECTORY core
    PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq)
  kernel_flags(portable)
  kernel_flags(avx2 ${avx2})
  kernel_flags(avx_vnni ${avx2} -mavxvnni)
  kernel_flags(avx512 ${avx512})
  kernel_flags(avx512_vnni ${avx512} -mavx512vnni)
  kernel_flags(avx512_bf16 ${avx512} -mavx512vnni -mavx512bf16)
else()
  kernel_flags(portable)
  kernel_flags(neon)
  kernel_flags(neon_dotprod -march=armv8.2-a+dotprod)
  kernel_flags(neon_i8mm -march=armv8.2-a+dotprod+i8mm)
endif()
