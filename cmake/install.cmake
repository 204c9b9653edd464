# cmake --install build/release --prefix P: the program, the models it finds beside itself, and the
# library for find_package(stagecraft), which gives the target stagecraft::engine.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/stagecraft)

install(TARGETS stagecraft engine EXPORT stagecraft_targets)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stagecraft
  FILES_MATCHING PATTERN "*.h" PATTERN programs EXCLUDE PATTERN cuda_emulator EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/stagecraft OPTIONAL)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT stagecraft_targets NAMESPACE stagecraft:: DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/stagecraft-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/stagecraft-config.cmake
  ${CMAKE_BINARY_DIR}/stagecraft-config-version.cmake DESTINATION ${package})
