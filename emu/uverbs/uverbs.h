/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The uverbs character device of one function: commands in, results out.
 *
 * Speaks the Linux RDMA user ABI (ioctl RDMA_VERBS_IOCTL, and the older write()
 * commands) as mlx5_ib answers it.  Knows nothing of how the calls arrive.
 *
 * Every pointer in a command is the application's: a bad one is -EFAULT.
 * Threads: any; each call takes the device lock itself.
 */
#ifndef EMU_UVERBS_UVERBS_H
#define EMU_UVERBS_UVERBS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct emu_dev;
struct uv_file;

int uv_file_open(struct emu_dev *dev, struct uv_file **out);	/* 0, -ENOMEM */
/* Frees every object of the file, also those that the application leaked; but for those that have
 * a handle in another one of this function. */
void uv_file_close(struct uv_file *file);

/*
 * Files that other processes know: @number is what this function calls it in its segment.  Whoever
 * got the command descriptor, which has this inode, can open it as one that was @imported.
 */
struct uv_identity { uint64_t dev, ino; uint32_t slot, generation, number; };
void uv_file_identify(struct uv_file *file, struct uv_identity *id);	/* dev, ino are given */
/* -EIO its process is gone; -EOPNOTSUPP nothing can be shared;
 * -ENOMEM */
int uv_file_import(struct emu_dev *dev, const struct uv_identity *id, struct uv_file **out);

/* May somebody who has the command descriptor want this process's part of the file? */
bool uv_file_is_wanted(struct uv_file *file);

/* The user of this file says when an import ends, so that each counts. */
void uv_counts_imports(struct uv_file *file);
enum uv_import { UV_IMPORT_PD, UV_IMPORT_MR, UV_IMPORT_DM };
void uv_unimport(struct uv_file *file, enum uv_import kind, uint32_t handle);

/* Give an object of @from, or one that can be imported there, a handle in @to as well: both are of
 * one function.  As an import; -ENOENT, -EINVAL, ... */
int uv_share(struct uv_file *from, struct uv_file *to, enum uv_import kind, uint32_t handle,
	     uint32_t *handle_out);
/* @fd is closed with the file, which it keeps open where it came from. */
void uv_file_keeps(struct uv_file *file, int fd);

/* RDMA_VERBS_IOCTL with @call in the application's memory.  0 or -errno. */
int uv_ioctl(struct uv_file *file, void *call);
/* A write() command.  Bytes consumed or -errno. */
ssize_t uv_write(struct uv_file *file, const void *command, size_t bytes);
/* mmap() of @offset: 0 and the address in *out, or -errno. */
int uv_mmap(struct uv_file *file, void *hint, size_t bytes, int prot, int flags,
	    uint64_t offset, void **out);

/* No lock: the clock pages of this file show the time of now. */
void uv_clock_refresh(struct uv_file *file);

/* For operation patching: number of the QP or CQ with this handle, or -ENOENT. */
int64_t uv_cqn(struct uv_file *file, uint32_t handle);
#endif
