# The catalogue of tests/mistakes: programs that are wrong in ways people are wrong in, and others that
# are right in ways of their own. Each is one file with the functions of a stage, as a student would
# write them, or an edit of such a file (tools/catalogue.py). For a program NAME of stage NN:
#
#   worker_NN_NAME  a worker like the student's: tests/mistakes/NN-slug/NAME in the build folder
#   broken_NN_NAME  the program of `./stage broken NN NAME` (wrong ones that have a sentence)
#
#   mistakes_NN     the workers that the diagnosis of a failure asks
#   catalogue_NN    all workers of a stage
#
# None of them is part of `all`. What a file does not define comes from the engine's archive, whose
# members are the twins one by one, so only what is needed is linked.
set(mistakes ${CMAKE_SOURCE_DIR}/tests/mistakes)
file(GLOB registries CONFIGURE_DEPENDS ${mistakes}/*/mistakes.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${registries})

foreach(registry IN LISTS registries)
  get_filename_component(folder ${registry} DIRECTORY)
  get_filename_component(slug ${folder} NAME)
  string(SUBSTRING ${slug} 0 2 id)
  if(NOT id IN_LIST stage_ids)
    continue()  # compiled for an emulator that is not here
  endif()
  set(recorded_${id} "")
  if(id IN_LIST composed_stages)
    set(recorded_${id} ${recorded_objects})
  endif()
  set(linked "")  # ours stays in the engine's archive
  if(in_place_${id})
    set(linked $<TARGET_OBJECTS:linked_${id}>)
  endif()
  add_custom_target(mistakes_${id})
  add_custom_target(catalogue_${id})
  # "name|file|base, if it is an edit|sentence, if it has one|flags": CMake itself would parse the registry once a word.
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/catalogue.py ${folder}
    OUTPUT_VARIABLE programs_of_stage OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" programs_of_stage "${programs_of_stage}")
  set(edited ${CMAKE_BINARY_DIR}/generated/mistakes/${slug})
  set(edits "")
  set(bases "")
  foreach(line IN LISTS programs_of_stage)
    string(REPLACE "|" ";" line "${line}")
    list(GET line 1 2 file)
    list(POP_BACK file base)
    if(base)
      list(APPEND edits ${edited}/${file})
      list(APPEND bases ${folder}/${base})
    endif()
  endforeach()
  if(edits)
    list(REMOVE_DUPLICATES bases)
    add_custom_command(OUTPUT ${edits}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/catalogue.py ${folder} ${edited}
      DEPENDS ${registry} ${bases} ${CMAKE_SOURCE_DIR}/tools/catalogue.py)
    add_custom_target(edits_${id} DEPENDS ${edits})
  endif()
  foreach(line IN LISTS programs_of_stage)
    string(REPLACE "|" ";" line "${line}")
    list(GET line 0 name)
    list(GET line 1 file)
    list(GET line 2 base)
    list(GET line 3 sentence)
    list(GET line 4 flags)
    set(source ${folder}/${file})
    if(base)
      set(source ${edited}/${file})
    endif()
    set(programs worker_${id}_${name})
    set(calls "")
    set(linked_worker ${linked})
    if(id IN_LIST emulated_stages)
      set(calls $<TARGET_OBJECTS:emulated_calls>)
      set(linked_worker "")
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX)
    endif()
    add_executable(worker_${id}_${name} EXCLUDE_FROM_ALL
      ${source} $<TARGET_OBJECTS:worker> ${calls} ${recorded_${id}} ${linked_worker})
    set_target_properties(worker_${id}_${name} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/mistakes/${slug})
    add_dependencies(catalogue_${id} worker_${id}_${name})
    if(NOT stage_flags_${id})  # where speed is no part of the mark, hundreds compile a third faster
      target_compile_options(worker_${id}_${name} PRIVATE -O1)
    endif()
    if(sentence)
      add_dependencies(mistakes_${id} worker_${id}_${name})
      add_executable(broken_${id}_${name} EXCLUDE_FROM_ALL
        ${source} ${CMAKE_SOURCE_DIR}/src/mine/students_code.cpp
        $<TARGET_OBJECTS:programs> ${linked})
      target_link_libraries(broken_${id}_${name} PRIVATE PkgConfig::libedit)
      list(APPEND programs broken_${id}_${name})
    endif()
    if(id IN_LIST emulated_stages)
      compile_for_emulator(worker_${id}_${name} --trusted)
      link_emulator(worker_${id}_${name})
      if(sentence)
        compile_for_emulator(broken_${id}_${name} --fast)
        link_emulator(broken_${id}_${name})
      endif()
    endif()
    foreach(program IN LISTS programs)
      if(base)
        add_dependencies(${program} edits_${id})
        target_include_directories(${program} PRIVATE ${folder})
      endif()
      target_link_libraries(${program} PRIVATE engine stagecraft_flags)
      target_compile_options(${program} PRIVATE ${stage_flags_${id}})
      string(REPLACE " " ";" flags "${flags}")
      target_compile_options(${program} PRIVATE ${flags})
    endforeach()
  endforeach()

  # An emulator runs the gate, but nothing that the gate starts.
  if(NOT CMAKE_CROSSCOMPILING)
    add_test(NAME mistakes.build_${id}
      COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target gate catalogue_${id} engine_${id} stand_ins)
    set_tests_properties(mistakes.build_${id} PROPERTIES LABELS mistakes
      FIXTURES_SETUP catalogue_${id} RESOURCE_LOCK build TIMEOUT 900)
    add_test(NAME mistakes.catalogue_${id}
      COMMAND ${Python3_EXECUTABLE} ${mistakes}/catalogue_test.py ${CMAKE_BINARY_DIR} ${id})
    set_tests_properties(mistakes.catalogue_${id} PROPERTIES LABELS mistakes
      FIXTURES_REQUIRED catalogue_${id} TIMEOUT 900)
  endif()
endforeach()

if(NOT CMAKE_CROSSCOMPILING)
  add_test(NAME mistakes.build_broken
    COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target stagecraft broken_02_no_mean)
  set_tests_properties(mistakes.build_broken PROPERTIES LABELS mistakes
    FIXTURES_SETUP broken RESOURCE_LOCK build TIMEOUT 900)
  add_test(NAME mistakes.broken
    COMMAND ${Python3_EXECUTABLE} ${mistakes}/broken_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(mistakes.broken PROPERTIES LABELS mistakes FIXTURES_REQUIRED broken)
endif()

# What a student reads when a gate fails. The numbers are those of libstdc++'s generators, asked in the order
# in which GCC evaluates arguments.
if(NOT CMAKE_CROSSCOMPILING AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_test(NAME mistakes.golden
    COMMAND ${Python3_EXECUTABLE} ${gates}/golden_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(mistakes.golden PROPERTIES LABELS mistakes
    FIXTURES_REQUIRED "catalogue_00;catalogue_01;catalogue_02;catalogue_03;catalogue_04;catalogue_05")
endif()
