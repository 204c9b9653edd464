# The kernels: one source, kernel_table.h, compiled once per line of instruction_sets.txt. Named feature by
# feature, because GCC 12 has no -march=znver4. Which table runs is decided when the program starts.
set(instruction_sets ${CMAKE_SOURCE_DIR}/src/operators/kernels/instruction_sets.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${instruction_sets})

# The speed of a loop depends on where in a cache line it begins. Without the alignment, a change in a file that has
# nothing to do with the kernels made prompts 2% slower.
set(kernel_options -fno-math-errno -falign-functions=64)
# GCC 12 takes the undefined upper half of its own intrinsics for a variable nobody set.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND kernel_options -Wno-uninitialized -Wno-maybe-uninitialized)
endif()

set(kernel_list "")
file(STRINGS ${instruction_sets} lines REGEX "^${processor} ")
foreach(line IN LISTS lines)
  separate_arguments(words UNIX_COMMAND "${line}")
  list(POP_FRONT words this_processor isa)
  set(flags "")
  if(STAGECRAFT_EMULATE_AMX AND isa STREQUAL "amx")
    list(FILTER words EXCLUDE REGEX "^amx-")
    set(flags -include ${CMAKE_SOURCE_DIR}/tests/operators/amx_emulator.h)
  endif()
  if(words AND processor STREQUAL "aarch64")
    list(JOIN words "+" features)
    set(flags -march=armv8.2-a+${features})
  else()
    foreach(feature IN LISTS words)
      list(APPEND flags -m${feature})
    endforeach()
  endif()
  list(JOIN words " " features)
  set(entry_${isa} "KERNELS(${isa}, \"${features}\")\n")
  string(APPEND kernel_list "${entry_${isa}}")
  set(flags_${isa} "${flags}")
  list(APPEND isas ${isa})
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/lists/instruction_sets.inc CONTENT "${kernel_list}")

# The core engine has the kernels of one instruction set: the one that would be chosen here.
if(NOT STAGECRAFT_FIRST_KERNELS IN_LIST isas)
  list(GET isas 0 first)
  if(NOT CMAKE_CROSSCOMPILING)
    try_run(kernels_here_ran kernels_here_compiled ${CMAKE_CURRENT_BINARY_DIR}/kernels_here
      ${CMAKE_SOURCE_DIR}/cmake/kernels_here.cpp
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${CMAKE_SOURCE_DIR}/src;${CMAKE_CURRENT_BINARY_DIR}/lists"
      RUN_OUTPUT_VARIABLE said)
    string(STRIP "${said}" said)
    if(said IN_LIST isas)
      set(first ${said})
    endif()
  endif()
  set(STAGECRAFT_FIRST_KERNELS ${first} CACHE STRING "The instruction set of the core engine's kernels" FORCE)
endif()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/lists_without_more/instruction_sets.inc
  CONTENT "${entry_${STAGECRAFT_FIRST_KERNELS}}")

foreach(isa IN LISTS isas)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/kernels/${isa}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT
    "#define STAGECRAFT_ISA ${isa}\n#include \"operators/kernels/kernel_table.h\"\n")
  set(library more)
  if(isa STREQUAL STAGECRAFT_FIRST_KERNELS)
    set(library core)
  endif()
  target_sources(${library} PRIVATE ${source})
  set_source_files_properties(${source} TARGET_DIRECTORY ${library}
    PROPERTIES COMPILE_OPTIONS "${flags_${isa}};${kernel_options}" SKIP_PRECOMPILE_HEADERS ON)
endforeach()
