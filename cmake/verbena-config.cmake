# SPDX-License-Identifier: BSD-2-Clause
#
# find_package(verbena) gives the targets verbena::ibverbs, which is our libibverbs and its headers,
# and verbena::mlx5, which is our libmlx5 and that.
include(CMakeFindDependencyMacro)
find_dependency(Threads)	# the headers have locks in them
include(${CMAKE_CURRENT_LIST_DIR}/verbena-targets.cmake)
