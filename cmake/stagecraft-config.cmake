# The engine is a static library, so a program that links it needs what it stands on.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
find_dependency(nlohmann_json)
find_dependency(PkgConfig)
pkg_check_modules(pcre2 REQUIRED QUIET IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED QUIET IMPORTED_TARGET libutf8proc)
include(${CMAKE_CURRENT_LIST_DIR}/stagecraft_targets.cmake)
