# The judge and the judged of the course. For each stage NN a program worker_NN, which links the
# student's files for that stage and ours for all others; worker_ours links ours alone. The gate links
# nothing of a student's: it starts the worker that STAGE_WORKER names.
set(gates ${CMAKE_SOURCE_DIR}/tests/gates)

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/stages/*.cpp)
add_library(worker OBJECT ${sources})
target_include_directories(worker PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(worker PRIVATE engine_headers stagecraft_flags)

function(add_worker name mine)  # mine: the stage that is the student's, or "none"
  set(objects "")
  foreach(id IN LISTS stage_ids)
    if(id STREQUAL mine)
      list(APPEND objects $<TARGET_OBJECTS:mine_${id}>)
    else()
      list(APPEND objects $<TARGET_OBJECTS:ours_${id}>)
    endif()
  endforeach()
  add_executable(${name} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:worker> $<TARGET_OBJECTS:core> ${objects})
  target_link_libraries(${name} PRIVATE stagecraft_flags engine_headers Threads::Threads
    PkgConfig::pcre2 PkgConfig::utf8proc)
endfunction()

add_worker(worker_ours none)
set_target_properties(worker_ours PROPERTIES EXCLUDE_FROM_ALL OFF)
foreach(id IN LISTS stage_ids)
  add_worker(worker_${id} ${id})
endforeach()

file(GLOB sources CONFIGURE_DEPENDS ${gates}/*.cpp)
add_executable(gate ${sources} ${CMAKE_SOURCE_DIR}/tests/stages/exchange.cpp)
target_include_directories(gate PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(gate PRIVATE engine stagecraft_flags nlohmann_json::nlohmann_json
  GTest::gtest)
target_compile_definitions(gate PRIVATE TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
  REPOSITORY="${CMAKE_SOURCE_DIR}")
gtest_discover_tests(gate TEST_PREFIX ours. DISCOVERY_MODE PRE_TEST
  PROPERTIES LABELS gates ENVIRONMENT STAGE_WORKER=$<TARGET_FILE:worker_ours>)

# A starter compiles as it is, and its gate says that it is not written yet: no more, no less. A stage
# that a student has begun is skipped. (An emulator would run the gate, but nothing that it starts.)
if(NOT CMAKE_CROSSCOMPILING)
  foreach(id IN LISTS stage_ids)
    add_test(NAME starters.unwritten_${id}
      COMMAND ${Python3_EXECUTABLE} ${gates}/starter_test.py ${CMAKE_BINARY_DIR} ${id})
    set_tests_properties(starters.unwritten_${id} PROPERTIES LABELS gates RESOURCE_LOCK build
      SKIP_RETURN_CODE 77 TIMEOUT 900)
  endforeach()

  # What student code prints is shown also where it crashes before its line ends.
  add_executable(worker_prints EXCLUDE_FROM_ALL
    ${gates}/workers/prints_then_crashes.cpp $<TARGET_OBJECTS:worker>)
  target_link_libraries(worker_prints PRIVATE engine stagecraft_flags)
  add_test(NAME gates.build_printing
    COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target gate worker_prints)
  set_tests_properties(gates.build_printing PROPERTIES LABELS gates FIXTURES_SETUP worker_prints
    RESOURCE_LOCK build)
  add_test(NAME gates.shows_what_was_printed COMMAND gate --gtest_filter=Silu.*)
  set_tests_properties(gates.shows_what_was_printed PROPERTIES LABELS gates
    FIXTURES_REQUIRED worker_prints
    ENVIRONMENT "STAGE_WORKER=$<TARGET_FILE:worker_prints>;STAGECRAFT_LANG=en"
    PASS_REGULAR_EXPRESSION
      "crashed[^\n]*\n  your code printed:\nx .1.\ntensor[^\n]*\nsize [0-9]+\nbefore the loop")
endif()
