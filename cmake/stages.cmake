# The pairs of the course, read from stages/stages.json: for each stage NN an OBJECT library ours_NN
# (our twins) and one mine_NN (the student's files) with the same symbols. A program links one of each.
# counted_NN is mine_NN for `./stage story --mine`, which tells how often it was called.
#
#   stage_ids        "00;01;..."
#   composed_stages  those of them that need others
#   stage_files_NN   the student's files of stage NN
#   staged_twins     every file of src/ that stands in some ours_NN
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/stages/stages.json)
file(READ ${CMAKE_SOURCE_DIR}/stages/stages.json registry)
string(JSON n_stages LENGTH "${registry}" stages)
math(EXPR last_stage "${n_stages} - 1")

foreach(index RANGE ${last_stage})
  string(JSON id GET "${registry}" stages ${index} id)
  string(JSON slug GET "${registry}" stages ${index} slug)
  if(id LESS 10)
    set(id 0${id})
  endif()
  list(APPEND stage_ids ${id})
  string(JSON n_needs LENGTH "${registry}" stages ${index} needs)
  if(n_needs GREATER 0)
    list(APPEND composed_stages ${id})
  endif()
  set(mine "")
  set(ours "")
  string(JSON n_units LENGTH "${registry}" stages ${index} units)
  math(EXPR last_unit "${n_units} - 1")
  foreach(unit RANGE ${last_unit})
    string(JSON file GET "${registry}" stages ${index} units ${unit} file)
    list(APPEND mine ${CMAKE_SOURCE_DIR}/stages/${id}-${slug}/${file})
    string(JSON n_twins LENGTH "${registry}" stages ${index} units ${unit} twins)
    math(EXPR last_twin "${n_twins} - 1")
    foreach(twin RANGE ${last_twin})
      string(JSON file GET "${registry}" stages ${index} units ${unit} twins ${twin})
      list(APPEND ours ${CMAKE_SOURCE_DIR}/${file})
    endforeach()
  endforeach()
  list(APPEND staged_twins ${ours})
  set(stage_files_${id} ${mine})

  add_library(ours_${id} OBJECT ${ours})
  target_link_libraries(ours_${id} PRIVATE engine_headers stagecraft_flags)
  # Warnings help a student; only ours are errors.
  foreach(library IN ITEMS mine_${id} counted_${id})
    add_library(${library} OBJECT EXCLUDE_FROM_ALL ${mine})
    target_link_libraries(${library} PRIVATE engine_headers)
    target_compile_options(${library} PRIVATE -Wall -Wextra -ffp-contract=off)
  endforeach()
  count_calls(counted_${id})
endforeach()
