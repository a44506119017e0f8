/* SPDX-License-Identifier: Apache-2.0 */
/* Copies uploaded files from a spool to a folder. Each file gets its name when it is complete. */
#ifndef DIRLISTING_UPLOAD_STORE_H
#define DIRLISTING_UPLOAD_STORE_H

#include <monkey/str.h>
#include <stdint.h>
#include <sys/types.h>

enum { UPLOAD_NAME_MAX = 255, UPLOAD_TEMPORARY_MAX = 32 };

struct upload_file {
    char name[UPLOAD_NAME_MAX + 1];
    char temporary[UPLOAD_TEMPORARY_MAX]; /* empty: the file has no temporary name */
    uint64_t offset, size;                /* in the spool */
    dev_t device;                         /* with the inode: identifies the file that was written */
    ino_t inode;                          /* 0: none was written */
};

struct upload_store {
    int spool, folder; /* descriptors */
    bool may_replace;
    size_t n;
    int error;     /* 0: all files are stored; else a negative errno value */
    size_t failed; /* index of the file that was not stored */
    struct upload_file files[];
};

/* Is this a name that a client may choose: valid UTF-8 without slashes, backslashes, control characters, and a dot at the
 * beginning? */
bool dirlisting_upload_is_name(mk_str name);
/* Stores all files or none. With `may_replace`, a failure to rename leaves the files that were renamed before. Blocks on
 * disk I/O. */
void dirlisting_upload_store(struct upload_store *s);

#endif
