/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine is called, and where others reach it. */
#ifndef MK_OS_MACHINE_H
#define MK_OS_MACHINE_H

#include "base/arena.h"

enum { MK_MACHINE_NAMES_MAX = 160 };

/* Names of hosts in lower case and addresses, none of them twice. */
struct mk_machine_names {
    const char *at[MK_MACHINE_NAMES_MAX]; /* in an arena */
    size_t n;
};

/* localhost, the name of the host, the same in .local, 127.0.0.1, ::1, and the addresses of all interfaces,
 * but for those of IPv6 that mean nothing without the interface. What does not fit is left out; false: memory
 * is out. */
bool mk_machine_names(struct mk_arena *arena, struct mk_machine_names *out) MK_MUST_USE;

/* Adds one if it is not there. */
bool mk_machine_add_name(struct mk_arena *arena, struct mk_machine_names *names, mk_str name) MK_MUST_USE;

/* As `hostname` prints it. */
mk_str mk_machine_host(struct mk_arena *arena) MK_MUST_USE;

#endif
