# Writes OUT, a header that names the version and the commit of SOURCE.
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#pragma once
#define STAGECRAFT_VERSION \"@VERSION@\"
#define STAGECRAFT_COMMIT \"@commit@\"
" @ONLY)
