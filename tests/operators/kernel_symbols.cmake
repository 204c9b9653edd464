# Included with NM and OBJECTS set.
#
# Code that is compiled for one instruction set must be used by that set only. The linker could use a weak symbol (an
# inline function or template that was not inlined) for the whole program. The program would then end with an illegal
# instruction on a processor that lacks the set.
set(seen 0)
foreach(object IN LISTS OBJECTS)
  if(NOT object MATCHES "/kernels/[a-z0-9_]+[.]cpp[.]o")
    continue()
  endif()
  execute_process(COMMAND ${NM} -C ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES " [A-TV-Z] [^\n]*::table")
    continue()
  endif()
  string(REGEX MATCHALL "[^\n]* [WwVvu] [^\n]*" weak "${symbols}")
  list(FILTER weak EXCLUDE REGEX "__(asan|ubsan|sanitizer)|DW.ref|_GLOBAL_OFFSET_TABLE_")
  if(weak)
    message(FATAL_ERROR "${object}: expected no weak symbols, found: ${weak}")
  endif()
  math(EXPR seen "${seen} + 1")
endforeach()
if(seen EQUAL 0)
  message(FATAL_ERROR "no kernels among the objects")
endif()
message(STATUS "${seen} instruction sets, no weak symbols")
