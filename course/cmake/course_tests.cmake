# Tests of the commands of the course. They use the standard library's unittest.
set(course_tests ${CMAKE_SOURCE_DIR}/tests/course)
foreach(test IN ITEMS course loop update)
  add_test(NAME tools.${test} COMMAND ${Python3_EXECUTABLE} ${course_tests}/commands/${test}_test.py)
  set_tests_properties(tools.${test} PROPERTIES LABELS tools)
endforeach()

foreach(test IN ITEMS graders grading lateness likeness pulling regrading roster sending tables viva)
  add_test(NAME class.${test} COMMAND ${Python3_EXECUTABLE} ${course_tests}/classroom/${test}_test.py)
  set_tests_properties(class.${test} PROPERTIES LABELS tools)
endforeach()

if(EXISTS ${CMAKE_SOURCE_DIR}/models/story/config.json AND NOT STAGECRAFT_SANITIZE
   AND NOT CMAKE_CROSSCOMPILING)
  foreach(test IN ITEMS tour walk adding_a_stage workflow)
    add_test(NAME tools.${test}
      COMMAND ${Python3_EXECUTABLE} ${course_tests}/commands/${test}_test.py ${CMAKE_BINARY_DIR})
    set_tests_properties(tools.${test} PROPERTIES LABELS tools)
  endforeach()
  set_tests_properties(tools.walk tools.adding_a_stage PROPERTIES TIMEOUT 1800 RESOURCE_LOCK course_copy)
  set_tests_properties(tools.walk PROPERTIES COST 500)  # the longest test starts first
  set_tests_properties(tools.workflow PROPERTIES TIMEOUT 1800)
endif()
