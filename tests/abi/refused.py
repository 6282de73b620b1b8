#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls every function of our libmlx5.so.1 for what no device of ours has.

Usage: refused.py INCLUDE CC LIBRARY.  Each is called with nothing in all its parameters, and must
answer as its type in the header tells that it does: NULL and errno, or an errno, EOPNOTSUPP each
time.  What is not called is what works, and a list below says so.  The exit status is 1 if a
function answers something else.
"""
import ctypes
import errno
import pathlib
import sys

import facts
from symbols import exports_of

WORKING = {"mlx5dv_is_supported", "mlx5dv_open_device", "mlx5dv_query_device", "mlx5dv_init_obj",
           "_mlx5dv_query_port", "mlx5dv_get_clock_info", "mlx5dv_set_context_attr",
           "mlx5dv_devx_alloc_uar", "mlx5dv_devx_free_uar", "mlx5dv_create_cq",
           "mlx5dv_create_qp", "mlx5dv_qp_ex_from_ibv_qp_ex", "mlx5dv_create_wq",
           "mlx5dv_alloc_dm", "mlx5dv_create_flow_matcher", "mlx5dv_destroy_flow_matcher",
           "mlx5dv_create_flow", "mlx5dv_create_flow_action_modify_header",
           "mlx5dv_create_flow_action_packet_reformat"}
# What these return is no errno: a count, which is negative then; -1 and errno.
OTHERWISE = {"mlx5dv_qp_cancel_posted_send_wrs": (-errno.EOPNOTSUPP, 0),
             "mlx5dv_devx_get_event": (-1, errno.EOPNOTSUPP),
             "mlx5dv_vfio_get_events_fd": (-1, errno.EOPNOTSUPP)}
PARAMETERS_MAX = 12


def wanted(name, signature):
    """(type, what it returns, errno)"""
    answer = signature.split("(")[0]
    if answer.endswith("*"):
        return ctypes.c_void_p, None, errno.EOPNOTSUPP
    if answer == "void":
        return None, None, 0
    if name in OTHERWISE:
        return ctypes.c_long if "long" in answer else ctypes.c_int, *OTHERWISE[name]
    return ctypes.c_int, errno.EOPNOTSUPP, errno.EOPNOTSUPP


def main():
    compiler = [sys.argv[2], "-D_GNU_SOURCE", "-w", "-include", "stdint.h", "-I" + sys.argv[1]]
    declared = {fact.split()[1]: value for fact, value in
                facts.facts_of(compiler, "infiniband/mlx5dv.h", r"/infiniband/").items()
                if fact.startswith("function ")}
    path = pathlib.Path(sys.argv[3])
    names = sorted({symbol.split("@")[0] for symbol in exports_of(path)} - WORKING)
    library = ctypes.CDLL(str(path), use_errno=True)
    wrong = 0
    for name in names:
        function = getattr(library, name)
        function.restype, value, error = wanted(name, declared[name])
        ctypes.set_errno(0)
        got = function(*[ctypes.c_void_p()] * PARAMETERS_MAX), ctypes.get_errno()
        if got != (value, error):
            print("%s gives %s and errno %d, not %s and %d" % (name, *got, value, error))
            wrong += 1
    print("%d functions refuse, %d are wrong" % (len(names), wrong))
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
