# count_calls(TARGET): the functions of the target's own files, not those of headers, tell
# course/mine/call_counter.cpp when they are entered and left; the program links call_counter with them.
add_library(call_counter OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/course/mine/call_counter.cpp
  ${CMAKE_SOURCE_DIR}/course/mine/students_code.cpp)
target_link_libraries(call_counter PRIVATE course_headers stagecraft_flags)

function(count_calls target)
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)  # not for an editor
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # After inlining: what stands in headers is gone by then.
    target_compile_options(${target} PRIVATE -finstrument-functions-after-inlining)
    return()
  endif()
  # GCC has the calls in before it inlines, and a hook in each x(t, i) would take longer than the
  # work. So nothing in headers (ccache may have made their paths relative), and no helper that is
  # nobody else's.
  file(RELATIVE_PATH source ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/src)
  set(headers ${CMAKE_SOURCE_DIR}/src/ ${source}/ ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  list(TRANSFORM headers REPLACE "," "\\\\,")
  list(JOIN headers "," headers)
  target_compile_options(${target} PRIVATE -finstrument-functions
    "-finstrument-functions-exclude-file-list=${headers}"
    "-finstrument-functions-exclude-function-list={anonymous},<lambda")
endfunction()
