# The catalogue of course/mistakes: programs with mistakes that people make, and right programs that are written in
# unusual ways. Each is one file with the functions of a stage, as a student would write them, or an edit of such a file
# (course/mistakes/catalogue.py). For a program NAME of stage NN, ninja makes these files in the build folder:
#
#   course/mistakes/NN-slug/NAME  a worker like the student's
#   course/broken_NN_NAME         the program of `./stage broken NN NAME` (wrong programs that have a sentence)
#
# The targets:
#
#   mistakes_NN     the workers that the diagnosis of a failure asks
#   catalogue_NN    all workers of a stage
#   broken_NN       all programs of ./stage broken for a stage; it asks for one of them by its file
#
# None of them is part of `all`. Functions that a file does not define come from an engine's archive. Its members are
# our answers one by one, so only the needed ones are linked.
#
# The programs are small and their headers are large: 90% of the time to compile one goes into headers. So the headers
# that the programs of a stage include are compiled once per stage.
include(CheckLinkerFlag)
set(mistakes ${CMAKE_SOURCE_DIR}/course/mistakes)
file(GLOB registries CONFIGURE_DEPENDS ${mistakes}/*/mistakes.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${registries})

# Links a program from objects and an engine. It is a custom command, not a target: with hundreds of targets, each run
# of CMake would take longer than ninja takes for these links.
separate_arguments(link_flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}")
check_linker_flag(CXX -fuse-ld=gold has_gold)  # takes a third of the usual linker's time
if(has_gold)
  list(APPEND link_flags -fuse-ld=gold)
endif()
function(link_program file engine)
  add_custom_command(OUTPUT ${file} COMMENT "Linking ${file}" VERBATIM COMMAND_EXPAND_LISTS
    COMMAND ${CMAKE_CXX_COMPILER} ${link_flags} $<TARGET_PROPERTY:stagecraft_flags,INTERFACE_LINK_OPTIONS>
      ${ARGN} $<TARGET_FILE:${engine}> $<TARGET_FILE:fmt::fmt>
      $<TARGET_PROPERTY:PkgConfig::pcre2,INTERFACE_LINK_LIBRARIES>
      $<TARGET_PROPERTY:PkgConfig::utf8proc,INTERFACE_LINK_LIBRARIES> ${CMAKE_THREAD_LIBS_INIT} -o ${file}
    DEPENDS "$<FILTER:${ARGN},EXCLUDE,^->" ${engine})
endfunction()

add_course_objects(says_students ${CMAKE_SOURCE_DIR}/course/mine/students_code.cpp)

# "slug|name|file|base, if it is an edit|named (it has a sentence), again (the same mistake in other code) or
# right|flags". Python does this, because CMake would parse the whole registry once per word.
execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/course/mistakes/catalogue.py
  OUTPUT_VARIABLE programs_of_all OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" programs_of_all "${programs_of_all}")

# The headers that the programs in a folder include, but not the files beside them that share code.
function(headers_of folder out)
  file(GLOB texts CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*.h)
  set(headers "")
  foreach(text IN LISTS texts)
    file(STRINGS ${text} lines REGEX "^#include (<.*>|\".*/.*\")")
    list(APPEND headers ${lines})
  endforeach()
  list(TRANSFORM headers REPLACE "#include " "")
  list(REMOVE_DUPLICATES headers)
  set(${out} ${headers} PARENT_SCOPE)
endfunction()

set(for_ccache "")  # as in precompile
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(for_ccache -fpch-preprocess)
endif()

# The programs of most stages are compiled with the same options, so one precompiled header serves them.
set(headers "")
foreach(registry IN LISTS registries)
  get_filename_component(folder ${registry} DIRECTORY)
  get_filename_component(slug ${folder} NAME)
  string(SUBSTRING ${slug} 0 2 id)
  if(id IN_LIST stage_ids AND NOT stage_flags_${id} AND NOT traps_${id} AND NOT id IN_LIST emulated_stages)
    list(APPEND plain_stages ${id})
    headers_of(${folder} more)
    list(APPEND headers ${more})
  endif()
endforeach()
list(REMOVE_DUPLICATES headers)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/plain_headers.cpp CONTENT "")
add_library(plain_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/plain_headers.cpp)
target_link_libraries(plain_headers PRIVATE engine stagecraft_flags)
target_compile_options(plain_headers PRIVATE -O1 ${for_ccache})
target_precompile_headers(plain_headers PRIVATE ${headers})

# The steps of one stage; they share their variables (macros).

# Links each program of the stage, and collects their sources by group: those with a name, the others. Some sources are
# made by edits of other files.
macro(link_programs)
  set(programs_of_stage ${programs_of_all})
  list(FILTER programs_of_stage INCLUDE REGEX "^${slug}[|]")
  set(edited ${CMAKE_BINARY_DIR}/generated/mistakes/${slug})
  set(edits "")
  set(bases "")
  set(named_sources "")
  set(named_workers "")
  set(other_sources "")
  set(other_workers "")
  set(fast_sources "")
  set(broken "")
  set(right_${id} "")  # objects
  foreach(line IN LISTS programs_of_stage)
    string(REPLACE "|" ";" line "${line}")
    list(GET line 1 name)
    list(GET line 2 file)
    list(GET line 3 base)
    list(GET line 4 kind)
    list(GET line 5 flags)
    set(source ${folder}/${file})
    if(base)
      set(source ${edited}/${file})
      list(APPEND edits ${source})
      list(APPEND bases ${folder}/${base})
    endif()
    if(flags)
      string(REPLACE " " ";" flags "${flags}")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags}" SKIP_PRECOMPILE_HEADERS ON)
    endif()
    set(group other)
    if(kind STREQUAL "named")
      set(group named)
    endif()
    string(REPLACE "." "[.]" object ${file})
    set(object_of_broken $<FILTER:$<TARGET_OBJECTS:${group_of_broken}_${id}>,INCLUDE,/${object}>)
    set(object $<FILTER:$<TARGET_OBJECTS:${group}_${id}>,INCLUDE,/${object}>)
    set(worker ${CMAKE_BINARY_DIR}/course/mistakes/${slug}/${name})
    link_program(${worker} ${engine_for_${id}} ${in_worker} ${object} ${emulator})
    list(APPEND ${group}_sources ${source})
    list(APPEND ${group}_workers ${worker})
    if(kind STREQUAL "named")
      set(program ${CMAKE_BINARY_DIR}/course/broken_${id}_${name})
      link_program(${program} engine ${program_objects} $<TARGET_OBJECTS:says_students> ${object_of_broken}
        ${linked} ${emulator} $<TARGET_PROPERTY:PkgConfig::libedit,INTERFACE_LINK_LIBRARIES>)
      list(APPEND broken ${program})
    elseif(kind STREQUAL "right")
      list(APPEND right_${id} ${object})
    endif()
  endforeach()
  if(edits)
    list(REMOVE_DUPLICATES bases)
    add_custom_command(OUTPUT ${edits}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/course/mistakes/catalogue.py ${folder} ${edited}
      DEPENDS ${registry} ${bases} ${CMAKE_SOURCE_DIR}/course/mistakes/catalogue.py)
    add_custom_target(edits_${id} DEPENDS ${edits})
  endif()
endmacro()

# Compiles the sources, a library of objects per group.
macro(compile_programs)
  set(has_headers "")  # the target whose precompiled header is used
  if(id IN_LIST plain_stages)
    set(has_headers plain_headers)
  else()
    headers_of(${folder} headers)
  endif()
  if(emulator)
    set(fast_sources ${named_sources})
  endif()
  foreach(group IN ITEMS named other fast)
    if(NOT ${group}_sources)
      continue()
    endif()
    add_library(${group}_${id} OBJECT EXCLUDE_FROM_ALL ${${group}_sources})
    target_include_directories(${group}_${id} PRIVATE ${folder})
    target_link_libraries(${group}_${id} PRIVATE engine stagecraft_flags)
    if(stage_flags_${id})
      target_compile_options(${group}_${id} PRIVATE ${stage_flags_${id}} ${for_ccache})
    else()  # speed gives no points, and unoptimised code compiles a third faster
      target_compile_options(${group}_${id} PRIVATE -O1 ${for_ccache})
    endif()
    target_compile_options(${group}_${id} PRIVATE ${traps_${id}})
    if(group STREQUAL "fast")
      compile_for_emulator(fast_${id} --fast)
    elseif(emulator)
      compile_for_emulator(${group}_${id} --trusted)
    endif()
    if(edits)
      add_dependencies(${group}_${id} edits_${id})
    endif()
    if(has_headers)
      target_precompile_headers(${group}_${id} REUSE_FROM ${has_headers})
    elseif(headers)
      target_precompile_headers(${group}_${id} PRIVATE ${headers})
      set(has_headers ${group}_${id})
    endif()
  endforeach()
endmacro()

# The targets and tests of the stage.
macro(add_catalogue)
  add_custom_target(mistakes_${id} DEPENDS ${named_workers})
  add_custom_target(catalogue_${id} DEPENDS ${other_workers})
  add_dependencies(catalogue_${id} mistakes_${id})
  if(TARGET judged_${id})  # its symbols show which of our functions a program leaves out (make_class.py)
    add_dependencies(catalogue_${id} judged_${id})
  endif()
  add_custom_target(broken_${id} DEPENDS ${broken})

  # An emulator would run the gate, but not the programs that it starts.
  if(NOT CMAKE_CROSSCOMPILING)
    add_building_test(mistakes.build_${id} mistakes catalogue_${id}
      gate catalogue_${id} engine_${id} ${stand_ins})
    add_test(NAME mistakes.catalogue_${id}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/course/mistakes/catalogue_test.py ${CMAKE_BINARY_DIR} ${id})
    set_tests_properties(mistakes.catalogue_${id} PROPERTIES LABELS mistakes
      FIXTURES_REQUIRED catalogue_${id} TIMEOUT 900)
  endif()
endmacro()

foreach(registry IN LISTS registries)
  get_filename_component(folder ${registry} DIRECTORY)
  get_filename_component(slug ${folder} NAME)
  string(SUBSTRING ${slug} 0 2 id)
  if(NOT id IN_LIST stage_ids)
    continue()  # an emulated stage, and this machine has no emulator
  endif()
  set(recorded_${id} "")
  if(id IN_LIST composed_stages)
    set(recorded_${id} ${recorded_objects})
  endif()
  set(linked "")  # our version stays in the engine's archive
  if(linked_files_${id})
    set(linked $<TARGET_OBJECTS:linked_${id}>)
  endif()
  worker_objects(${id} in_worker)
  list(APPEND in_worker ${recorded_${id}})
  set(group_of_broken named)  # the group of objects with which ./stage broken is linked
  set(emulator "")
  if(id IN_LIST emulated_stages)
    set(emulator -no-pie $<TARGET_OBJECTS:emulator>)
    list(APPEND in_worker $<TARGET_OBJECTS:unwritten_on_gpu>)
    set(group_of_broken fast)  # without checks
    list(APPEND linked $<TARGET_FILE:fast_ours_${id}> $<TARGET_OBJECTS:mine_on_emulator>)
  endif()
  link_programs()
  compile_programs()
  add_catalogue()
endforeach()

# Checks that the test itself runs; ./stage selftest --catalogue tries 200 mutants and 40 pairs.
if(NOT CMAKE_CROSSCOMPILING)
  add_test(NAME mistakes.names COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/course/mistakes/names_test.py ${CMAKE_BINARY_DIR}
    --mutants 2 --pairs 1 --rounds 3 --stages 2 --seed 1)
  set_tests_properties(mistakes.names PROPERTIES LABELS mistakes TIMEOUT 900
    FIXTURES_REQUIRED catalogue_02)

  add_building_test(mistakes.build_broken mistakes broken stagecraft course/broken_02_no_mean)
  add_test(NAME mistakes.broken
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/course/mistakes/broken_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(mistakes.broken PROPERTIES LABELS mistakes FIXTURES_REQUIRED broken)

  # Judges the speed of stage 9 for a slow, a fast and a wrong program.
  add_test(NAME mistakes.speed COMMAND ${Python3_EXECUTABLE} ${gates}/speed_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(mistakes.speed PROPERTIES LABELS mistakes FIXTURES_REQUIRED catalogue_09
    SKIP_RETURN_CODE 77 TIMEOUT 300)
endif()

# Compares what a student reads when a gate fails. The numbers are those of libstdc++'s generators, called in the order
# in which GCC evaluates arguments.
if(NOT CMAKE_CROSSCOMPILING AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_test(NAME mistakes.golden
    COMMAND ${Python3_EXECUTABLE} ${gates}/golden_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(mistakes.golden PROPERTIES LABELS mistakes
    FIXTURES_REQUIRED "catalogue_00;catalogue_01;catalogue_02;catalogue_03;catalogue_04;catalogue_05;catalogue_06;catalogue_07;catalogue_08;catalogue_11")
endif()
