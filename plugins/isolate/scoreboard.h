/* SPDX-License-Identifier: Apache-2.0 */
/* Scoreboard of a group: its workers' state, in memory shared with the server. */
#ifndef ISOLATE_SCOREBOARD_H
#define ISOLATE_SCOREBOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ISOLATE_WORKERS_MAX = 64, ISOLATE_SLOTS = 4 * ISOLATE_WORKERS_MAX, ISOLATE_SECRET = 32 };

/* One process; processes of older configurations have slots as well. */
struct isolate_slot {
    _Atomic int32_t pid;      /* 0: free, like that of a dead process. Negative: being taken */
    _Atomic uint32_t is_up;   /* accepts requests, or did until it died */
    _Atomic uint64_t version; /* version of its configuration */
};

struct isolate_scoreboard {
    unsigned char secret[ISOLATE_SECRET]; /* secret of the public workers; constant */
    _Atomic uint64_t version;             /* version of the configuration that the group should have */
    _Atomic uint64_t down_ms; /* since when no worker serves, as noticed by a request; 0: some do */
    _Atomic uint32_t told;    /* that was logged */
    struct isolate_slot slots[ISOLATE_SLOTS];
};

/* Acquires a slot for this process. NULL: none. */
struct isolate_slot *isolate_scoreboard_acquire_slot(struct isolate_scoreboard *scoreboard, uint64_t version);
/* Does any worker serve? */
bool isolate_scoreboard_is_serving(struct isolate_scoreboard *scoreboard);
/* Is a worker with that configuration alive and, if `up`, serving? */
bool isolate_scoreboard_has_version(struct isolate_scoreboard *scoreboard, uint64_t version, bool up);
/* Has no worker served for so long that requests should no longer wait? */
bool isolate_scoreboard_is_down(struct isolate_scoreboard *scoreboard, uint64_t now_ms);

#endif
