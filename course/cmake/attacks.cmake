# Proves what student code cannot do: each file of tests/attacks is compiled confined, linked with the engine in place
# of the engine's own rms_norm, and judged. Not under a sanitizer or an emulator, where nothing is confined.
if(NOT CMAKE_CROSSCOMPILING AND NOT STAGECRAFT_SANITIZE)
  add_executable(worker_attacked EXCLUDE_FROM_ALL $<TARGET_OBJECTS:worker>)
  target_link_libraries(worker_attacked PRIVATE core_engine stagecraft_flags)
  list(TRANSFORM emulated_stages PREPEND judged_ OUTPUT_VARIABLE emulated_answers)  # for the tests that grade
  add_building_test(attacks.build attacks attacked gate worker_attacked grading ${emulated_answers})
  # They mostly wait for time limits, so they run side by side.
  function(add_attacks name)
    add_test(NAME attacks.${name}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/attacks/attacks_test.py ${CMAKE_BINARY_DIR} ${ARGN})
    set_tests_properties(attacks.${name} PROPERTIES LABELS attacks FIXTURES_REQUIRED attacked SKIP_RETURN_CODE 77
      TIMEOUT 1800 COST 200)
  endfunction()
  add_attacks(earn_nothing_and_harm_nothing Attack)
  add_attacks(cost_their_own_stage_alone Graded)
  add_attacks(are_confined WithoutConfinement Files Judge)
  add_test(NAME attacks.own_work
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/attacks/own_work_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(attacks.own_work PROPERTIES LABELS attacks FIXTURES_REQUIRED attacked TIMEOUT 900
    COST 100)
  add_test(NAME attacks.hidden_copies
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/attacks/hidden_copies_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(attacks.hidden_copies PROPERTIES LABELS attacks FIXTURES_REQUIRED attacked SKIP_RETURN_CODE 77
    TIMEOUT 900)
  if(emulated_stages)
    add_test(NAME attacks.sealed
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/attacks/sealed_test.py ${CMAKE_BINARY_DIR})
    set_tests_properties(attacks.sealed PROPERTIES LABELS attacks FIXTURES_REQUIRED attacked TIMEOUT 900)
  endif()
endif()
