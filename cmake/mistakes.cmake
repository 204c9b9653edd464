# The catalogue of tests/mistakes: programs that are wrong in ways people are wrong in, and others that
# are right in ways of their own. Each is one file with the functions of a stage, as a student would
# write them. For a program NAME of stage NN:
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
  file(READ ${registry} text)
  string(JSON n_programs LENGTH "${text}" programs)
  math(EXPR last "${n_programs} - 1")
  foreach(index RANGE ${last})
    string(JSON entry GET "${text}" programs ${index})  # each call reads all of its text
    string(JSON file GET "${entry}" file)
    string(JSON n_flags ERROR_VARIABLE none LENGTH "${entry}" flags)
    string(JSON sentence ERROR_VARIABLE none TYPE "${entry}" en)
    get_filename_component(name ${file} NAME_WE)
    set(programs worker_${id}_${name})
    add_executable(worker_${id}_${name} EXCLUDE_FROM_ALL
      ${folder}/${file} $<TARGET_OBJECTS:worker> ${recorded_${id}} ${linked})
    set_target_properties(worker_${id}_${name} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/mistakes/${slug})
    add_dependencies(catalogue_${id} worker_${id}_${name})
    if(NOT stage_flags_${id})  # where speed is no part of the mark, hundreds compile a third faster
      target_compile_options(worker_${id}_${name} PRIVATE -O1)
    endif()
    if(sentence STREQUAL "STRING")
      add_dependencies(mistakes_${id} worker_${id}_${name})
      add_executable(broken_${id}_${name} EXCLUDE_FROM_ALL
        ${folder}/${file} ${CMAKE_SOURCE_DIR}/src/mine/students_code.cpp
        $<TARGET_OBJECTS:programs> ${linked})
      target_link_libraries(broken_${id}_${name} PRIVATE PkgConfig::libedit)
      list(APPEND programs broken_${id}_${name})
    endif()
    foreach(program IN LISTS programs)
      target_link_libraries(${program} PRIVATE engine stagecraft_flags)
      target_compile_options(${program} PRIVATE ${stage_flags_${id}})
      if(n_flags GREATER 0)
        math(EXPR last_flag "${n_flags} - 1")
        foreach(flag RANGE ${last_flag})
          string(JSON flag GET "${entry}" flags ${flag})
          target_compile_options(${program} PRIVATE ${flag})
        endforeach()
      endif()
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
