# What this machine and its compiler are, decided once.
#   processor     x86_64, aarch64 or other
#   has_emulator  whether kernels of a GPU run on this processor (src/cuda_emulator). The emulator needs Linux and the
#                 code that GCC generates (12 or newer, for -ftrivial-auto-var-init), and it cannot run inside another
#                 emulator or together with a sanitizer.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(processor x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(processor aarch64)
else()
  set(processor other)
endif()

set(has_emulator NO)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
   AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12 AND NOT CMAKE_CROSSCOMPILING
   AND NOT STAGECRAFT_SANITIZE AND NOT CMAKE_CXX_FLAGS_DEBUG MATCHES "sanitize")
  set(has_emulator YES)
endif()
