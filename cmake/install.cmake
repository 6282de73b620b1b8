# SPDX-License-Identifier: BSD-2-Clause
#
# What a developer of programs finds after `cmake --install`: headers, the verbs library, and the
# two ways to ask for them, pkg-config and find_package(verbena).  The top CMakeLists.txt includes
# it; the command, the shim and the manual pages are installed where they are made.
#
# All of it that has a name of rdma-core's lies in folders called verbena: whatever the prefix is,
# no program gets it who did not ask.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/verbena)
set(library_dir ${CMAKE_INSTALL_LIBDIR}/verbena)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/verbena)

install(DIRECTORY include/infiniband DESTINATION ${header_dir} FILES_MATCHING PATTERN "*.h")

set_target_properties(verbena_ibverbs PROPERTIES EXPORT_NAME ibverbs)
target_include_directories(verbena_ibverbs INTERFACE $<INSTALL_INTERFACE:${header_dir}>)
install(TARGETS verbena_ibverbs EXPORT verbena LIBRARY DESTINATION ${library_dir})
# `verbena run --own` wants both.
install(TARGETS verbena_mlx5 LIBRARY DESTINATION ${library_dir})
install(EXPORT verbena NAMESPACE verbena:: FILE verbena-targets.cmake DESTINATION ${package_dir})
write_basic_package_version_file(verbena-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES cmake/verbena-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/verbena-config-version.cmake
  DESTINATION ${package_dir})

# verbena.pc is for programs that know of us.  With PKG_CONFIG_PATH set to the other's folder, those
# that ask for libibverbs get ours; so it has the version of rdma-core 44's.
set(ibverbs_version 1.14.44.0)
foreach(folder header_dir library_dir)
  set(pc_${folder} ${${folder}})
  if(NOT IS_ABSOLUTE ${${folder}})	# said relative to the prefix: the tree can be moved
    set(pc_${folder} "\${prefix}/${${folder}}")
  endif()
endforeach()
configure_file(cmake/verbena.pc.in verbena.pc @ONLY)
configure_file(cmake/libibverbs.pc.in libibverbs.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/verbena.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/libibverbs.pc DESTINATION ${library_dir}/pkgconfig)
