# Defines two versions of each stage, from stages/stages.json. For stage NN: the objects ours_NN (our answer) and an
# OBJECT library mine_NN (the student's files) with the same symbols. A program links one of the two. counted_NN is
# mine_NN for `./stage story --mine`; it counts calls.
#
# A stage may name compiler flags ("flags", by processor), so that points for speed do not depend on the machine. The
# student's files are compiled with them. So is our answer for the judge, in the objects judged_NN. ours_NN, which is
# shipped and must run anywhere, is compiled without them.
#
#   stage_ids        "00;01;..."
#   composed_stages  those of them that need others
#   stage_files_NN   the student's files of stage NN
#   stage_flags_NN   its flags on this processor
#   asked_NN         the functions that its gate asks for: its own, and those in "asks"
#   judged_NN        our objects for the judge: ours_NN, or compiled with the stage's flags
#   tests_NN         the tests of its gate, as a filter of GoogleTest: "Silu.*:Swiglu.*"
#   tests_left_out   the same of stages that this build leaves out
#   engine_for_NN    the library that its workers are linked with: core_engine, or engine if the stage has "whole_engine"
#   unstaged_engine, unstaged_core_engine  the objects of these two libraries without those of any stage
#
# The model does not call the functions of some stages by itself. Such a stage names a file that calls them
# ("in_the_model"), and, if it needs that, files of the engine that other files replace ("in_place_of"). Both are only
# in programs with the student's functions:
#
#   linked_files_NN  the stage's own file, and course/mine/NAME.cpp for each replaced file NAME.cpp
#   linked_NN        an OBJECT library of them
#   in_place_NN      the names of the replaced files, as a regular expression: "rms_norm|attention"
#   model_stages     stages whose gate asks the model, so that their linked_files_NN are in their workers, too
#
# Two more keys are for the judge:
#
#   "stand_ins"      files of course/worker/stand_ins in the stage's worker, in place of files of the engine that call our
#                    version of its functions (stand_ins_NN)
#   "traps"          the programs of the catalogue for this stage convert numbers to integers, some of them wrongly
#                    (traps_NN: flags)
#
# Files that end in .cu are CUDA. They are compiled for the emulator (cmake/emulator.cmake), and their programs are linked
# with it. Without an emulator (cmake/platform.cmake) these stages are left out.
#
#   emulated_stages  those stages; no engine contains their reference versions, which are the objects of judged_NN
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/stages/stages.json)
file(READ ${CMAKE_SOURCE_DIR}/stages/stages.json registry)
string(JSON n_stages LENGTH "${registry}" stages)
math(EXPR last_stage "${n_stages} - 1")

# Converting NaN or a too large number to an integer is undefined, and happens to give the right result on some
# processors. A function that ends without its return goes on in other code, and then nearly any message can follow. In a
# student's code both stop the program at once; the sanitized worker then finds the line.
set(traps -fsanitize=float-cast-overflow,return -fsanitize-undefined-trap-on-error)

# Local variables without a value often happen to be 0. With these options, a student's are something else. Not where
# speed gives points: an array that is filled in each iteration makes our answer to stage 9 up to a quarter slower.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-ftrivial-auto-var-init=pattern has_unset)

# The texts of an array of the registry: registry_texts(OUT stages 3 flags x86_64). Empty if there is none.
function(registry_texts out)
  set(texts "")
  string(JSON n ERROR_VARIABLE none LENGTH "${registry}" ${ARGN})
  if(n GREATER 0)
    math(EXPR last "${n} - 1")
    foreach(index RANGE ${last})
      string(JSON text GET "${registry}" ${ARGN} ${index})
      list(APPEND texts "${text}")
    endforeach()
  endif()
  set(${out} ${texts} PARENT_SCOPE)
endfunction()

foreach(index RANGE ${last_stage})
  string(JSON id GET "${registry}" stages ${index} id)
  string(JSON slug GET "${registry}" stages ${index} slug)
  if(id LESS 10)
    set(id 0${id})
  endif()
  set(tests "")
  string(JSON n_groups LENGTH "${registry}" stages ${index} groups)
  math(EXPR last_group "${n_groups} - 1")
  foreach(group RANGE ${last_group})
    string(JSON name GET "${registry}" stages ${index} groups ${group} name)
    list(APPEND tests "${name}.*")
  endforeach()
  list(JOIN tests ":" tests_${id})
  string(JSON file GET "${registry}" stages ${index} units 0 file)
  set(is_emulated NO)
  if(file MATCHES "[.]cu$")
    set(is_emulated YES)
    file(GLOB there CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/stages/${id}-${slug}/${file})
    if(NOT has_emulator OR NOT there)  # it is optional
      list(APPEND tests_left_out ${tests_${id}})
      continue()
    endif()
    list(APPEND emulated_stages ${id})
  endif()
  list(APPEND stage_ids ${id})
  registry_texts(needs stages ${index} needs)
  if(needs)
    list(APPEND composed_stages ${id})
  endif()
  set(mine "")
  set(ours "")
  string(JSON n_units LENGTH "${registry}" stages ${index} units)
  math(EXPR last_unit "${n_units} - 1")
  foreach(unit RANGE ${last_unit})
    string(JSON file GET "${registry}" stages ${index} units ${unit} file)
    list(APPEND mine ${CMAKE_SOURCE_DIR}/stages/${id}-${slug}/${file})
    registry_texts(answers stages ${index} units ${unit} answers)
    list(TRANSFORM answers PREPEND ${CMAKE_SOURCE_DIR}/)
    list(APPEND ours ${answers})
  endforeach()
  if(is_emulated)
    set(ours_${id} "")
  else()
    list(JOIN ours "|" answers)
    string(REPLACE "${CMAKE_SOURCE_DIR}/src/" "" answers "${answers}")
    string(REPLACE ".cpp" "[.]cpp" answers "${answers}")
    list(APPEND staged_answers ${answers})
    set(ours_${id} "$<FILTER:$<TARGET_OBJECTS:core>,INCLUDE,/core[.]dir/([.]/)?(${answers})>")
  endif()
  set(stage_files_${id} ${mine})

  registry_texts(functions stages ${index} functions)
  registry_texts(asks stages ${index} asks)
  set(asked_${id} ${functions} ${asks})
  registry_texts(stage_flags_${id} stages ${index} flags ${processor})
  registry_texts(stand_ins_${id} stages ${index} stand_ins)
  set(traps_${id} "")
  string(JSON has_traps ERROR_VARIABLE none GET "${registry}" stages ${index} traps)
  if(has_traps AND NOT none)
    set(traps_${id} ${traps})
  endif()
  set(unset_${id} "")
  if(has_unset AND NOT stage_flags_${id} AND NOT is_emulated)
    set(unset_${id} -ftrivial-auto-var-init=pattern)
  endif()

  set(engine_for_${id} core_engine)
  string(JSON whole_engine ERROR_VARIABLE none GET "${registry}" stages ${index} whole_engine)
  if(whole_engine AND NOT none)
    set(engine_for_${id} engine)
  endif()

  set(judged_${id} ${ours_${id}})
  if(is_emulated)
    add_library(judged_${id} OBJECT EXCLUDE_FROM_ALL ${ours})
    target_link_libraries(judged_${id} PRIVATE engine_headers stagecraft_flags)
    compile_for_emulator(judged_${id} --trusted)
    add_library(fast_ours_${id} STATIC EXCLUDE_FROM_ALL ${ours})  # for ./stage broken
    target_link_libraries(fast_ours_${id} PRIVATE engine_headers)
    compile_for_emulator(fast_ours_${id} --fast)
  elseif(stage_flags_${id})
    add_library(judged_${id} OBJECT EXCLUDE_FROM_ALL ${ours})
    add_library(flags_${id} INTERFACE)
    target_compile_options(flags_${id} INTERFACE ${stage_flags_${id}})
    # The last flags win: -ffp-contract of the stage.
    target_link_libraries(judged_${id} PRIVATE engine_headers stagecraft_flags flags_${id})
    set(judged_${id} $<TARGET_OBJECTS:judged_${id}>)
    list(APPEND judged_libraries judged_${id})
  endif()
  # Warnings help a student; only in our files are they errors.
  foreach(library IN ITEMS mine_${id} counted_${id})
    add_library(${library} OBJECT EXCLUDE_FROM_ALL ${mine})
    target_link_libraries(${library} PRIVATE engine_headers)
    target_compile_options(${library} PRIVATE -Wall -Wextra ${wrong_warnings} -ffp-contract=off ${traps}
      ${stage_flags_${id}} ${unset_${id}})
  endforeach()
  count_calls(counted_${id})
  if(is_emulated)
    compile_for_emulator(mine_${id})
    compile_for_emulator(counted_${id} --fast)
  endif()

  set(linked_files_${id} "")
  set(in_place_${id} "")
  string(JSON file ERROR_VARIABLE none GET "${registry}" stages ${index} in_the_model file)
  if(NOT none)
    set(linked_files_${id} ${CMAKE_SOURCE_DIR}/${file})
    registry_texts(names stages ${index} in_the_model in_place_of)
    list(JOIN names "|" in_place_${id})
    list(TRANSFORM names REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/course/mine/\\1.cpp")
    list(APPEND linked_files_${id} ${names})
    add_course_objects(linked_${id} ${linked_files_${id}})
    if(NOT is_emulated)
      list(APPEND linked_stages linked_${id})
    endif()
    if(forward IN_LIST asked_${id})
      list(APPEND model_stages ${id})
    endif()
  endif()
endforeach()
list(JOIN staged_answers "|" staged_answers)
foreach(engine IN ITEMS engine core_engine)
  set(unstaged_${engine} "$<FILTER:${${engine}_objects},EXCLUDE,/core[.]dir/([.]/)?(${staged_answers})>")
endforeach()
