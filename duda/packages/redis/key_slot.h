/* SPDX-License-Identifier: Apache-2.0 */
/* Maps commands to the 16,384 slots of a Redis Cluster. */
#ifndef DUDA_REDIS_KEY_SLOT_H
#define DUDA_REDIS_KEY_SLOT_H

#include <monkey/str.h>

enum { REDIS_SLOTS = 16384, REDIS_NO_KEY = -1 };

/* Two keys of a command that belong to different slots. */
struct redis_crossslot {
    mk_str a, b;
    int slot_a, slot_b;
};

/* Returns the slot of a key. If the key contains a hash tag, the text between the first { and the next },
 * only the tag counts. */
int redis_key_slot(mk_str key);
/* Returns the slot of a command, REDIS_NO_KEY if any node can run it, or -EXDEV if its keys belong to several
 * slots: see *crossslot. */
int redis_command_slot(const mk_str *parts, size_t n, struct redis_crossslot *crossslot);

/* Prefix of Duda's own keys and channels: values, locks, limits and sessions of stores, jobs, topics.
 * Commands of services cannot use it. */
#define REDIS_RESERVED_PREFIX "!duda:"

bool redis_is_reserved_key(mk_str part);

#endif
