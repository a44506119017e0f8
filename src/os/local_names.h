/* SPDX-License-Identifier: Apache-2.0 */
/* Names and addresses of this machine. */
#ifndef MK_OS_LOCAL_NAMES_H
#define MK_OS_LOCAL_NAMES_H

#include "base/arena.h"

enum { MK_LOCAL_NAMES_MAX = 160 };

/* Lowercase host names, and addresses, without duplicates. */
struct mk_local_names {
    const char *at[MK_LOCAL_NAMES_MAX]; /* in an arena */
    size_t n;
};

/* Collects localhost, the host name, its first label, that label in .local, 127.0.0.1, ::1, and the addresses
 * of all interfaces, except link-local IPv6 addresses, which need a scope ID. Drops names beyond
 * MK_LOCAL_NAMES_MAX. False: out of memory. */
bool mk_local_names_collect(struct mk_arena *arena, struct mk_local_names *out) MK_MUST_USE;

/* Adds a name unless it is present. */
bool mk_local_names_add(struct mk_arena *arena, struct mk_local_names *names, mk_str name) MK_MUST_USE;

/* Returns the host name, as `hostname` prints it. */
mk_str mk_local_hostname(struct mk_arena *arena) MK_MUST_USE;

#endif
