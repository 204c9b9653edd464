# count_calls(TARGET): the functions in the target's own files, but not those in headers, call the hooks of
# course/mine/call_counter.cpp when they are entered and left. Links call_counter.
add_course_objects(call_counter ${CMAKE_SOURCE_DIR}/course/mine/call_counter.cpp
  ${CMAKE_SOURCE_DIR}/course/mine/students_code.cpp)

function(count_calls target)
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)  # not for editors
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # After inlining: inline functions of headers are gone by then.
    target_compile_options(${target} PRIVATE -finstrument-functions-after-inlining)
    return()
  endif()
  # GCC inserts the calls before it inlines, and a hook in each x(t, i) would take longer than the work. So functions in
  # headers are excluded (ccache may have made the paths of headers relative), and so are helpers in unnamed namespaces.
  file(RELATIVE_PATH source ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/src)
  set(headers ${CMAKE_SOURCE_DIR}/src/ ${source}/ ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  list(TRANSFORM headers REPLACE "," "\\\\,")
  list(JOIN headers "," headers)
  target_compile_options(${target} PRIVATE -finstrument-functions
    "-finstrument-functions-exclude-file-list=${headers}"
    "-finstrument-functions-exclude-function-list={anonymous},<lambda")
endfunction()
