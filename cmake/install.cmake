# SPDX-License-Identifier: BSD-2-Clause
#
# What a developer of programs finds after `cmake --install`: headers, the verbs libraries, and the
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
set_target_properties(verbena_mlx5 PROPERTIES EXPORT_NAME mlx5)
target_include_directories(verbena_ibverbs INTERFACE $<INSTALL_INTERFACE:${header_dir}>)
install(TARGETS verbena_ibverbs verbena_mlx5 EXPORT verbena LIBRARY DESTINATION ${library_dir})
install(EXPORT verbena NAMESPACE verbena:: FILE verbena-targets.cmake DESTINATION ${package_dir})
write_basic_package_version_file(verbena-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES cmake/verbena-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/verbena-config-version.cmake
  DESTINATION ${package_dir})

# verbena.pc is for programs that know of us.  With PKG_CONFIG_PATH set to the others' folder, those
# that ask for libibverbs or libmlx5 get ours; so they have the versions of rdma-core 44's.
set(ibverbs_version 1.14.44.0)
set(mlx5_version 1.24.44.0)
foreach(folder header_dir library_dir)
  set(pc_${folder} ${${folder}})
  if(NOT IS_ABSOLUTE ${${folder}})	# said relative to the prefix: the tree can be moved
    set(pc_${folder} "\${prefix}/${${folder}}")
  endif()
endforeach()
configure_file(cmake/verbena.pc.in verbena.pc @ONLY)
foreach(library ibverbs mlx5)
  configure_file(cmake/lib${library}.pc.in lib${library}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lib${library}.pc DESTINATION ${library_dir}/pkgconfig)
endforeach()
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/verbena.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
