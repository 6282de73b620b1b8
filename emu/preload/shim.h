/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the shim ask of each other.
 */
#ifndef EMU_PRELOAD_SHIM_H
#define EMU_PRELOAD_SHIM_H
#include <stdbool.h>
#include <sys/stat.h>

/* False with VERBENA_NIC=hw: then every call goes straight through. */
bool shim_is_on(void);

/* open() of the device: a descriptor, or -1 and errno. */
int device_open(int flags);

/* @fd was passed to this process: if it is a command descriptor it is the device from now on.  0 or
 * -errno of emu_adopt(). */
int device_adopt(int fd);

/* What the kernel says of a descriptor or path becomes what it says of the device. */
void device_stat(struct stat *st);

/* Takes over SIGSEGV and SIGBUS, so that the emulator sees faults before the application.
 * Around the first emu_open(): prepare before, take after.  0 or -errno */
void guard_prepare(void);
int guard_take(void);
#endif
