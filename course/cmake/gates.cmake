# The judge and the workers of the course. For each stage NN there is a program worker_NN. It links the student's files
# for that stage, the code that calls its functions, and what these two need from the archive engine_NN, which has no
# answer to the stage. So functions that the stage may not call are not in the program. worker_ours links only our
# files. The gate links nothing of a student's: it starts the worker that STAGE_WORKER names. Built only on request:
#
#   worker_NN_debug  for ./stage debug: the student's files with debug information
#   worker_NN_asan   for code that crashed: with AddressSanitizer and UndefinedBehaviorSanitizer
#   my_tests_NN      the student's own tests, if there is a my_tests.cpp beside the starter
set(gates ${CMAKE_SOURCE_DIR}/tests/gates)

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/course/worker/*.cpp)
add_course_objects(worker ${sources})
# This file runs once per question. With -O3 it takes longer to compile than any other file of the worker. The gate links
# it, too, so it checks indices as the gate does. Core's precompiled header was made without these checks.
set_source_files_properties(${CMAKE_SOURCE_DIR}/course/worker/exchange.cpp PROPERTIES
  COMPILE_OPTIONS -O1 COMPILE_DEFINITIONS _GLIBCXX_ASSERTIONS SKIP_PRECOMPILE_HEADERS ON)

# Our operators compiled a second time as plain_..., and wrappers around them that record the results in the workers of
# composed stages (course/worker/operator_record.h).
set(recorded_operators rms_norm linear swiglu)
add_course_objects(recorded ${CMAKE_SOURCE_DIR}/course/worker/recorded/operators.cpp)
add_course_objects(plain ${CMAKE_SOURCE_DIR}/src/operators/rms_norm.cpp
  ${CMAKE_SOURCE_DIR}/src/operators/swiglu.cpp ${CMAKE_SOURCE_DIR}/src/model/linear.cpp)
foreach(name IN LISTS recorded_operators)
  target_compile_definitions(plain PRIVATE ${name}=plain_${name})
endforeach()
set(recorded_objects $<TARGET_OBJECTS:recorded> $<TARGET_OBJECTS:plain>)
list(JOIN recorded_operators "|" recorded_operators)

# Our objects without those of stage `id`: a program with a student's files for it may link these.
function(objects_without id out)
  set(objects ${unstaged_${engine_for_${id}}})
  foreach(other IN LISTS stage_ids)
    if(NOT other STREQUAL id)
      list(APPEND objects ${judged_${other}})
    endif()
  endforeach()
  if(linked_files_${id} AND NOT id IN_LIST emulated_stages)
    list(APPEND objects $<TARGET_OBJECTS:linked_${id}>)
  endif()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# The same for a worker: in a composed stage, our operators record their results.
function(recorded_objects_without id out)
  objects_without(${id} objects)
  if(id IN_LIST composed_stages)
    set(objects "$<FILTER:${objects},EXCLUDE,/(${recorded_operators})[.]cpp>" ${recorded_objects})
  endif()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# The worker's code that calls the functions of an emulated stage.
if(has_emulator)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/course/worker/emulated/*.cpp)
  add_course_objects(emulated_calls ${sources})
  add_course_objects(unwritten_on_gpu ${CMAKE_SOURCE_DIR}/course/worker/stand_ins/on_gpu.cpp)
endif()

# The objects of a worker of stage `id`, without those of the stage and of the engine. Of the files that call functions,
# only those that call a function of its gate: the others would link our versions of functions that the stage must not
# have.
file(GLOB call_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/course/worker/*_calls.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${call_files})
function(worker_objects id out)
  set(others "")
  foreach(file IN LISTS call_files)
    file(READ ${file} text)
    get_filename_component(name ${file} NAME_WE)
    set(is_needed NO)
    foreach(function IN LISTS asked_${id})
      string(FIND "${text}" "{\"${function}\"," at)
      if(at GREATER -1)
        set(is_needed YES)
      endif()
    endforeach()
    if(NOT is_needed)
      list(APPEND others ${name})
    endif()
  endforeach()
  list(JOIN others "|" others)
  set(objects "$<FILTER:$<TARGET_OBJECTS:worker>,EXCLUDE,/(${others})[.]cpp>")
  if(stand_ins_${id})
    list(APPEND objects $<TARGET_OBJECTS:stand_ins_${id}>)
  endif()
  if(id IN_LIST emulated_stages)
    list(APPEND objects $<TARGET_OBJECTS:emulated_calls>)
  endif()
  # This object registers the stage with the model before main(). Nothing refers to it, so an archive would leave it
  # out.
  if(id IN_LIST model_stages)
    list(APPEND objects $<TARGET_OBJECTS:linked_${id}>)
  endif()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# Compiled as a student's code is: our own warnings are off. No link-time optimisation and no linker plugin: both would
# read, and run, data in a student's object.
set(plain_link -fno-lto)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND plain_link -fno-use-linker-plugin)
endif()
function(set_up_student_program name)
  target_link_libraries(${name} PRIVATE engine_headers Threads::Threads PkgConfig::pcre2
    PkgConfig::utf8proc)
  target_compile_options(${name} PRIVATE -Wall -Wextra ${wrong_warnings} -ffp-contract=off)
  target_link_options(${name} PRIVATE ${plain_link}
    $<TARGET_PROPERTY:stagecraft_flags,INTERFACE_LINK_OPTIONS>)
endfunction()

# A worker from these sources and objects, and all of ours except stage `id`.
function(add_whole_worker name id)
  recorded_objects_without(${id} objects)
  add_executable(${name} EXCLUDE_FROM_ALL ${ARGN} $<TARGET_OBJECTS:worker> ${objects})
  set_up_student_program(${name})
endfunction()

# A student's own tests of stage `id`: its sources, the objects of the stage, and all of ours except the stage.
function(add_own_tests name id)
  objects_without(${id} objects)
  add_executable(${name} EXCLUDE_FROM_ALL ${ARGN} ${objects})
  set_up_student_program(${name})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
endfunction()

set(debug -O0 -g -UNDEBUG -D_GLIBCXX_ASSERTIONS)
set(sanitizers -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all)
file(GLOB my_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/stages/*/my_tests.cpp)

set(engine_for_none engine)
add_whole_worker(worker_ours none)
set_target_properties(worker_ours PROPERTIES EXCLUDE_FROM_ALL OFF)
foreach(id IN LISTS stage_ids)
  if(stand_ins_${id})
    list(TRANSFORM stand_ins_${id} REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/course/worker/stand_ins/\\1.cpp"
      OUTPUT_VARIABLE files)
    add_course_objects(stand_ins_${id} ${files})
    list(APPEND stand_ins stand_ins_${id})
  endif()
  recorded_objects_without(${id} objects)
  add_library(engine_${id} STATIC EXCLUDE_FROM_ALL ${objects})
  worker_objects(${id} objects)
  # Our objects first: if several objects have an inline function, ours is linked.
  add_executable(worker_${id} EXCLUDE_FROM_ALL ${objects} $<TARGET_OBJECTS:mine_${id}>)
  target_link_libraries(worker_${id} PRIVATE engine_${id})
  set_up_student_program(worker_${id})
  list(APPEND engines engine_${id})
  if(id IN_LIST emulated_stages)
    link_emulator(worker_${id})  # its checker replaces a debugger and the sanitizers
    continue()
  endif()

  # The student's objects first: if several objects have an inline function, theirs is linked.
  add_whole_worker(worker_${id}_debug ${id} ${stage_files_${id}})
  target_compile_options(worker_${id}_debug PRIVATE ${stage_flags_${id}} ${unset_${id}} ${debug})
  add_whole_worker(worker_${id}_asan ${id} ${stage_files_${id}})
  target_compile_options(worker_${id}_asan PRIVATE ${stage_flags_${id}} ${unset_${id}} ${debug} ${sanitizers})
  target_link_options(worker_${id}_asan PRIVATE ${sanitizers})

  foreach(source IN LISTS my_tests)
    if(source MATCHES "/${id}-[^/]*/my_tests.cpp$")
      add_own_tests(my_tests_${id} ${id} ${source} $<TARGET_OBJECTS:mine_${id}>)
    endif()
  endforeach()
endforeach()

set(sandbox ${CMAKE_SOURCE_DIR}/course/sandbox)
add_course_objects(sandbox ${sandbox}/confinement.cpp ${sandbox}/landlock.cpp ${sandbox}/syscall_filter.cpp)
set(judge ${CMAKE_SOURCE_DIR}/course/judge)
file(GLOB gate_sources CONFIGURE_DEPENDS ${gates}/*.cpp)
compile_together(gate_sources gates 10 ${gate_sources})
file(GLOB judge_sources CONFIGURE_DEPENDS ${judge}/*.cpp)
list(REMOVE_ITEM judge_sources ${judge}/paths.cpp)  # has its own compile definitions
compile_together(judge_sources judge 10 ${judge_sources})
add_executable(gate ${gate_sources} ${judge_sources} ${judge}/paths.cpp $<TARGET_OBJECTS:sandbox>
  $<FILTER:$<TARGET_OBJECTS:worker>,INCLUDE,/exchange[.]cpp>)
target_include_directories(gate PRIVATE ${CMAKE_SOURCE_DIR})
# A worker's answer may have any shape: an index out of range ends the gate, and costs only that stage.
target_compile_definitions(gate PRIVATE _GLIBCXX_ASSERTIONS)
target_link_libraries(gate PRIVATE core_engine stagecraft_flags nlohmann_json::nlohmann_json
  GTest::gtest computing_test_flags)
precompile(gate PRIVATE <algorithm> <cmath> <filesystem> <string> <vector> <fmt/format.h> <gtest/gtest.h>
  <nlohmann/json.hpp>)
set_source_files_properties(${judge}/paths.cpp PROPERTIES
  COMPILE_DEFINITIONS REPOSITORY="${CMAKE_SOURCE_DIR}")

# A student's speed is compared with this worker: our code of each step of stages 9 and 10, compiled with the flags of
# the stage; step 0 as plain as it is written. Speed is judged only if it is that of the machine: in a release build,
# without an emulator or a sanitizer.
set(yardsticks ${CMAKE_SOURCE_DIR}/course/worker/yardsticks)
add_executable(yardsticks EXCLUDE_FROM_ALL ${yardsticks}/plain_loop.cpp ${yardsticks}/simd_steps.cpp
  ${yardsticks}/quantization_steps.cpp $<TARGET_OBJECTS:worker> ${judged_09} ${judged_10})
target_include_directories(yardsticks PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(yardsticks PRIVATE core_engine stagecraft_flags)
set_source_files_properties(${yardsticks}/plain_loop.cpp PROPERTIES COMPILE_OPTIONS "-O2;-fno-tree-vectorize")
set_source_files_properties(${yardsticks}/simd_steps.cpp PROPERTIES COMPILE_OPTIONS "${stage_flags_09}")
set_source_files_properties(${yardsticks}/quantization_steps.cpp PROPERTIES COMPILE_OPTIONS "${stage_flags_10}")
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CMAKE_CROSSCOMPILING AND NOT STAGECRAFT_SANITIZE)
  set_property(SOURCE ${judge}/paths.cpp APPEND PROPERTY
    COMPILE_DEFINITIONS YARDSTICKS="$<TARGET_FILE:yardsticks>")
  add_dependencies(gate yardsticks)
endif()
# The judge, and all that ./stage grade links a student's objects with.
add_custom_target(grading)
if(has_emulator)
  add_dependencies(grading emulator emulated_calls)
endif()
add_dependencies(grading gate worker_ours recorded plain engine core_engine ${judged_libraries} ${linked_stages}
  ${engines} ${stand_ins})
# For the ranking, ./stage class links whole programs.
add_custom_target(ranking)
add_dependencies(ranking grading stagecraft call_counter)
# Confines commands that Python starts, as the gate confines a worker: a student's compiler (course/sandbox/confine.py).
add_executable(confine ${sandbox}/confine.cpp $<TARGET_OBJECTS:sandbox>)
target_include_directories(confine PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(confine PRIVATE core_engine stagecraft_flags)
add_dependencies(gate confine)
runnable(worker_ours worker_ours)
# The functions of these stages replace others in the model, and their gates ask the model.
set(with_worker_of_its_own ${tests_left_out})  # tests; or without any worker
foreach(id IN LISTS model_stages)
  add_executable(worker_ours_${id} $<TARGET_OBJECTS:worker> ${judged_${id}} $<TARGET_OBJECTS:linked_${id}>)
  target_link_libraries(worker_ours_${id} PRIVATE core_engine stagecraft_flags)
  runnable(worker_ours_${id} worker_of_model)
  gtest_discover_tests(gate TEST_PREFIX ours. DISCOVERY_MODE PRE_TEST TEST_FILTER ${tests_${id}}
    PROPERTIES LABELS gates ENVIRONMENT STAGE_WORKER=${worker_of_model})
  list(APPEND with_worker_of_its_own ${tests_${id}})
endforeach()
foreach(id IN LISTS emulated_stages)
  add_executable(worker_ours_${id} $<TARGET_OBJECTS:worker> $<TARGET_OBJECTS:emulated_calls>
    $<TARGET_OBJECTS:judged_${id}>)
  target_link_libraries(worker_ours_${id} PRIVATE core_engine stagecraft_flags)
  link_emulator(worker_ours_${id})
  gtest_discover_tests(gate TEST_PREFIX ours. DISCOVERY_MODE PRE_TEST TEST_FILTER ${tests_${id}}
    PROPERTIES LABELS gates ENVIRONMENT STAGE_WORKER=$<TARGET_FILE:worker_ours_${id}>)
  list(APPEND with_worker_of_its_own ${tests_${id}})
endforeach()
list(JOIN with_worker_of_its_own ":" with_worker_of_its_own)
gtest_discover_tests(gate TEST_PREFIX ours. DISCOVERY_MODE PRE_TEST TEST_FILTER -${with_worker_of_its_own}:*Speed*
  PROPERTIES LABELS gates ENVIRONMENT STAGE_WORKER=${worker_ours})
# RUN_SERIAL: other tests would take time from what is measured.
gtest_discover_tests(gate TEST_PREFIX ours. DISCOVERY_MODE PRE_TEST TEST_FILTER *Speed*-${with_worker_of_its_own}
  PROPERTIES LABELS gates RUN_SERIAL ON ENVIRONMENT STAGE_WORKER=${worker_ours})

# A my_tests.cpp in a composed stage, here with our version of the stage.
add_own_tests(own_tests_06 06 ${CMAKE_SOURCE_DIR}/tests/course/own_tests_06.cpp ${judged_06})
set_target_properties(own_tests_06 PROPERTIES EXCLUDE_FROM_ALL OFF)
add_test(NAME gates.own_tests COMMAND own_tests_06)
set_tests_properties(gates.own_tests PROPERTIES LABELS gates)

# must_show checks that each case shows what it was made for: here with 3 seeds, in ./stage selftest --catalogue with
# 200.
add_test(NAME gates.show_what_they_must COMMAND gate --gtest_filter=-*Speed* --gtest_repeat=3 --gtest_brief=1)
set_tests_properties(gates.show_what_they_must PROPERTIES LABELS gates TIMEOUT 900 ENVIRONMENT "STAGE_REFEREE=")

# Each case has a name in each language.
add_test(NAME gates.case_names COMMAND ${Python3_EXECUTABLE} ${gates}/case_names_test.py ${CMAKE_BINARY_DIR})
set_tests_properties(gates.case_names PROPERTIES LABELS gates)

# A starter compiles unchanged, and its gate says exactly that it is not written yet. A stage that a student has begun
# is skipped. (An emulator would run the gate, but not the programs that it starts.)
if(NOT CMAKE_CROSSCOMPILING)
  foreach(id IN LISTS stage_ids)
    add_test(NAME starters.unwritten_${id}
      COMMAND ${Python3_EXECUTABLE} ${gates}/starter_test.py ${CMAKE_BINARY_DIR} ${id})
    set_tests_properties(starters.unwritten_${id} PROPERTIES LABELS gates RESOURCE_LOCK build
      SKIP_RETURN_CODE 77 TIMEOUT 900)
  endforeach()

  # ./stage debug, the sanitizers and my_tests.cpp are built on this.
  add_test(NAME gates.loop
    COMMAND ${Python3_EXECUTABLE} ${gates}/loop_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(gates.loop PROPERTIES LABELS gates RESOURCE_LOCK build TIMEOUT 900
    FIXTURES_REQUIRED catalogue_00)

  # Grades one repository. (mistakes_NN: what explains the failures of its stages 0 and 1.)
  add_building_test(gates.build_grading gates grading ranking mistakes_00 mistakes_01)
  add_test(NAME gates.grade
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/course/commands/grade_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(gates.grade PROPERTIES LABELS gates TIMEOUT 900
    FIXTURES_REQUIRED grading)

  # Pulls and grades a class of ten (./stage selftest --class: 500). ./stage class grades with the files in
  # build/release. So this test exists only there, and no other test may build there at the same time.
  if(CMAKE_BINARY_DIR STREQUAL "${CMAKE_SOURCE_DIR}/build/release")
    add_test(NAME class.of_ten
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/course/classroom/class_test.py ${CMAKE_BINARY_DIR})
    set_tests_properties(class.of_ten PROPERTIES LABELS gates TIMEOUT 900 RESOURCE_LOCK build
      FIXTURES_REQUIRED "grading;catalogue_00;catalogue_02")
  endif()

  # Student code that prints and then crashes within the line: the print is shown.
  add_executable(worker_prints EXCLUDE_FROM_ALL
    ${gates}/workers/prints_then_crashes.cpp $<TARGET_OBJECTS:worker>)
  target_link_libraries(worker_prints PRIVATE core_engine stagecraft_flags)
  add_building_test(gates.build_printing gates worker_prints gate worker_prints)
  add_test(NAME gates.shows_what_was_printed COMMAND gate --gtest_filter=Silu.*)
  set_tests_properties(gates.shows_what_was_printed PROPERTIES LABELS gates
    FIXTURES_REQUIRED worker_prints
    ENVIRONMENT "STAGE_WORKER=$<TARGET_FILE:worker_prints>;STAGECRAFT_LANG=en"
    PASS_REGULAR_EXPRESSION
      "crashed[^\n]*\n(  with [^\n]*\n)?  your code printed:\n    x .1.\n    tensor[^\n]*\n    size [0-9]+\n    before the loop")
endif()
