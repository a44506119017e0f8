/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the 16,384 slots of a Redis Cluster a command belongs to. */
#ifndef DUDA_REDIS_KEY_SLOT_H
#define DUDA_REDIS_KEY_SLOT_H

#include <monkey/str.h>

enum { REDIS_SLOTS = 16384, REDIS_NO_KEY = -1 };

/* Two keys of a command that no one node has. */
struct redis_crossslot {
    mk_str a, b;
    int slot_a, slot_b;
};

/* Of the key, or of the part of it between the first { and the next }. */
int redis_key_slot(mk_str key);
/* The slot of a command, or REDIS_NO_KEY: any node does it. -EXDEV: its keys are of several, *clash says
 * which. */
int redis_command_slot(const mk_str *parts, size_t n, struct redis_crossslot *crossslot);

/* What keys and channels of Duda itself begin with: values, locks, limits and sessions of stores, jobs, rooms. Commands of
 * services cannot name them. */
#define REDIS_RESERVED_PREFIX "!duda:"

bool redis_is_reserved_key(mk_str part);

#endif
