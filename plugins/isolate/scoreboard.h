/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers of a group tell the server: memory that all of them share. */
#ifndef ISOLATE_SCOREBOARD_H
#define ISOLATE_SCOREBOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ISOLATE_WORKERS_MAX = 64, ISOLATE_SLOTS = 4 * ISOLATE_WORKERS_MAX, ISOLATE_SECRET = 32 };

/* One process; those of older configurations have places beside those of the current one. */
struct isolate_slot {
    _Atomic int32_t pid; /* 0: free. So is that of a process that has died. Negative: it is taking the slot */
    _Atomic uint32_t is_up;   /* it accepts requests, or did until it died */
    _Atomic uint64_t version; /* of the configuration that it has */
};

struct isolate_scoreboard {
    unsigned char secret[ISOLATE_SECRET]; /* with which public workers prove who they are; constant */
    _Atomic uint64_t version;             /* of the configuration that the group is to have */
    _Atomic uint64_t down_ms; /* since when no worker serves, as a request has found; 0: some do */
    _Atomic uint32_t told;    /* that has been logged */
    struct isolate_slot slots[ISOLATE_SLOTS];
};

/* A place for this process. NULL: there is none. */
struct isolate_slot *isolate_scoreboard_acquire_slot(struct isolate_scoreboard *scoreboard, uint64_t version);
/* Does any worker serve? */
bool isolate_scoreboard_is_serving(struct isolate_scoreboard *scoreboard);
/* Does any worker live that has that configuration, and, if `up`, serves? */
bool isolate_scoreboard_has_version(struct isolate_scoreboard *scoreboard, uint64_t version, bool up);
/* Has none of them served for so long that requests should not wait any more? */
bool isolate_scoreboard_is_down(struct isolate_scoreboard *scoreboard, uint64_t now_ms);

#endif
