# stagecraft_mine: the program with the student's functions for the stages that `./stage story --mine 1-2` chooses.
# CMake need not run again for another choice: course/mine/mine_objects.py chooses the objects from this list, and
# writes their names into a file that the linker reads:
#
#   mine.json  "core": the engine's objects that belong to no stage. For each stage, "ours" and "students": its objects.
#              For a stage with "in_the_model" (stages.cmake), "linked": its objects, some of which replace our files
#              "in_place"; for CUDA, "emulated": the emulator's objects
function(json_list out)
  set(${out} "[\"$<JOIN:${ARGN},\"$<COMMA>\">\"]" PARENT_SCOPE)
endfunction()
if(has_emulator)
  add_library(mine_on_emulator OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/course/mine/on_emulator.cpp)
  target_link_libraries(mine_on_emulator PRIVATE course_headers stagecraft_flags)
endif()
set(rows "")
foreach(id IN LISTS stage_ids)
  set(linked "")
  if(linked_files_${id})
    set(linked $<TARGET_OBJECTS:linked_${id}>)
  endif()
  set(emulated "")
  if(id IN_LIST emulated_stages)
    set(emulated $<TARGET_OBJECTS:emulator> $<TARGET_OBJECTS:mine_on_emulator>)
  endif()
  json_list(ours "${ours_${id}}")
  json_list(students $<TARGET_OBJECTS:counted_${id}>)
  json_list(linked "${linked}")
  json_list(emulated "${emulated}")
  list(APPEND rows
    "\"${id}\": {\"ours\": ${ours}, \"students\": ${students}, \"linked\": ${linked}, \"emulated\": ${emulated}, \"in_place\": \"${in_place_${id}}\"}")
endforeach()
list(JOIN rows ",\n" rows)
json_list(core "${core_objects}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/course/mine.json CONTENT
  "{\"core\": ${core},\n\"stages\": {${rows}}}\n")

set(objects_of_mine ${CMAKE_BINARY_DIR}/course/mine_objects)
add_executable(stagecraft_mine EXCLUDE_FROM_ALL ${program_objects} $<TARGET_OBJECTS:call_counter>)
add_dependencies(stagecraft_mine core more)
target_link_options(stagecraft_mine PRIVATE @${objects_of_mine})
set_target_properties(stagecraft_mine PROPERTIES LINK_DEPENDS ${objects_of_mine})
target_link_libraries(stagecraft_mine PRIVATE stagecraft_flags engine_headers Threads::Threads
  PkgConfig::pcre2 PkgConfig::utf8proc PkgConfig::libedit)
