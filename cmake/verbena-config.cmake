# SPDX-License-Identifier: BSD-2-Clause
#
# find_package(verbena) gives the target verbena::ibverbs: our libibverbs and its headers.
include(CMakeFindDependencyMacro)
find_dependency(Threads)	# the headers have locks in them
include(${CMAKE_CURRENT_LIST_DIR}/verbena-targets.cmake)
