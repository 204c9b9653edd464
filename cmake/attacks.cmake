# What student code can't do: each file of tests/attacks is compiled confined, linked with the engine in
# the place of its own rms_norm and judged. Not under a sanitizer or an emulator, where nothing is confined.
if(NOT CMAKE_CROSSCOMPILING AND NOT STAGECRAFT_SANITIZE)
  add_executable(worker_attacked EXCLUDE_FROM_ALL $<TARGET_OBJECTS:worker>)
  target_link_libraries(worker_attacked PRIVATE engine stagecraft_flags)
  add_test(NAME attacks.build
    COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target gate worker_attacked grading)
  set_tests_properties(attacks.build PROPERTIES LABELS attacks FIXTURES_SETUP attacked
    RESOURCE_LOCK build TIMEOUT 1800)
  add_test(NAME attacks.earn_nothing_and_harm_nothing
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/attacks/attacks_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(attacks.earn_nothing_and_harm_nothing PROPERTIES LABELS attacks
    FIXTURES_REQUIRED attacked SKIP_RETURN_CODE 77 TIMEOUT 1800)
  add_test(NAME attacks.own_work
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/attacks/own_work_test.py ${CMAKE_BINARY_DIR})
  set_tests_properties(attacks.own_work PROPERTIES LABELS attacks FIXTURES_REQUIRED attacked TIMEOUT 900)
endif()
