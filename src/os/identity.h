/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the user and groups of a process, permanently or while it opens files. */
#ifndef MK_OS_IDENTITY_H
#define MK_OS_IDENTITY_H

#include <sys/types.h>

#include "base/err.h"

enum { MK_IDENTITY_GROUPS = 32 };

/* A user and its groups, looked up once, before the process drops its privileges. */
struct mk_identity {
    char user[64];
    uid_t uid;
    gid_t gid;
    gid_t groups[MK_IDENTITY_GROUPS]; /* all groups, including `gid` */
    int n_groups;                     /* -1: more than fit */
};

/* Looks up a user and a group; an empty group means the user's primary group. -ENOENT: the user or the group
 * does not exist; libmonkey always returns -ENOENT, because it keeps the user of its program. -ENOMEM: out of
 * memory. */
mk_err mk_identity_find(const char *user, const char *group, struct mk_identity *out) MK_MUST_USE;
/* Switches to that user permanently: sets the supplementary groups, all three group IDs and all three user
 * IDs, then checks that the process cannot regain its old IDs. */
mk_err mk_identity_become(const struct mk_identity *id) MK_MUST_USE;

/* File access rights of a process before it impersonated another user. */
struct mk_identity_saved {
    gid_t *groups;
    int n_groups;
    int dumpable;
};

/* Lets the calling thread open files with the rights of that user and its groups, until mk_identity_revert().
 * Only for a single-threaded root process. On failure, nothing changes. */
mk_err mk_identity_impersonate(const struct mk_identity *id, struct mk_identity_saved *own) MK_MUST_USE;
/* Restores the thread's own rights; aborts the process if that fails. */
void mk_identity_revert(struct mk_identity_saved *own);

#endif
