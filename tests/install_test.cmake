# Installs the build tree, builds examples/ against nothing but what was installed, and runs it.
# Given: BUILD (the tree), SOURCE (the repository), WORK (a folder of this test's own), MODEL, CXX.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(code)
    message(FATAL_ERROR "${ARGN}\nended with ${code}\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples -B ${WORK}/build -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/hello ${MODEL} "Once upon a time")
if(out STREQUAL "" OR out STREQUAL "\n")
  message(FATAL_ERROR "hello said nothing")
endif()
run(${WORK}/build/next_tokens ${MODEL} "Once upon a" "The cat sat on the")
if(NOT out MATCHES "^Once upon a\\| time\nThe cat sat on the\\| [a-z]+\n$")
  message(FATAL_ERROR "next_tokens: expected two lines, the first with 'time', found\n${out}")
endif()

# The installed program starts away from the repository.
run(${WORK}/prefix/bin/stagecraft --version)

file(REMOVE_RECURSE ${WORK})
