# Installs what other projects need to use libl3. Included by CMakeLists.txt in this folder.

# Programs that link a static libl3 must also link libzstd, libm and the C++ library. A shared libl3 links them itself.
set(L3_PC_REQUIRES "")
set(L3_PC_LIBS "")
if(l3_type STREQUAL "STATIC_LIBRARY")
  set(cxx_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
  list(FILTER cxx_libraries INCLUDE REGEX "^((std)?c\\+\\+(abi)?|m)$")
  list(REMOVE_DUPLICATES cxx_libraries)
  list(TRANSFORM cxx_libraries PREPEND "-l")
  # They are not in Libs.private, so that `pkg-config --libs l3` works without --static.
  list(JOIN cxx_libraries " " L3_PC_LIBS)
  set(L3_PC_REQUIRES "Requires: libzstd\n")
endif()

install(
  TARGETS l3
  EXPORT l3_targets
  RUNTIME COMPONENT runtime
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development)
install(
  DIRECTORY include/l3
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/l3)
include(CMakePackageConfigHelpers)
configure_package_config_file(l3-config.cmake.in l3-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(l3-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  EXPORT l3_targets
  NAMESPACE l3::
  DESTINATION ${package}
  COMPONENT development)
install(
  FILES ${CMAKE_CURRENT_BINARY_DIR}/l3-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/l3-config-version.cmake
  DESTINATION ${package}
  COMPONENT development)

# The .pc file finds the prefix relative to itself. So `cmake --install --prefix` works, and the tree may be moved.
file(RELATIVE_PATH L3_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH L3_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH L3_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(l3.pc.in l3.pc @ONLY)
install(
  FILES ${CMAKE_CURRENT_BINARY_DIR}/l3.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
