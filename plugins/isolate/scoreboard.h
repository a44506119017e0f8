/* SPDX-License-Identifier: Apache-2.0 */
/* The scoreboard of a group: the state of its workers, in memory shared with the server. */
#ifndef ISOLATE_SCOREBOARD_H
#define ISOLATE_SCOREBOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ISOLATE_WORKERS_MAX = 64, ISOLATE_SLOTS = 4 * ISOLATE_WORKERS_MAX, ISOLATE_SECRET = 32 };

enum isolate_worker_state {
    ISOLATE_WORKER_STARTS,
    ISOLATE_WORKER_SERVES, /* accepts requests, or did until it died */
    ISOLATE_WORKER_DRAINS, /* completes the requests that it has accepted */
};

/* The slot of a process. Processes of older configurations also have slots. */
struct isolate_slot {
    _Atomic int32_t pid;      /* free if 0 or the pid of a dead process; negative while a process takes it */
    _Atomic uint32_t state;   /* enum isolate_worker_state */
    _Atomic uint64_t version; /* version of the process's configuration */
};

struct isolate_scoreboard {
    unsigned char secret[ISOLATE_SECRET]; /* the public workers' secret, which never changes */
    _Atomic uint64_t version;             /* version of the configuration that the group should have */
    _Atomic uint64_t down_ms;        /* time of the first request that found no serving worker; 0: none */
    _Atomic uint32_t failure_logged; /* whether the failure was logged */
    struct isolate_slot slots[ISOLATE_SLOTS];
};

/* Acquires a slot for this process. Returns NULL if none is free. */
struct isolate_slot *isolate_scoreboard_acquire_slot(struct isolate_scoreboard *scoreboard, uint64_t version);
/* Returns whether any worker serves. */
bool isolate_scoreboard_is_serving(struct isolate_scoreboard *scoreboard);
/* Returns whether a worker that no longer accepts requests is still completing some. */
bool isolate_scoreboard_is_draining(struct isolate_scoreboard *scoreboard);
/* Returns whether a worker with that configuration serves. */
bool isolate_scoreboard_serves_version(struct isolate_scoreboard *scoreboard, uint64_t version);
/* Records since when the group has had no serving worker. Returns true if requests should no longer wait for
 * one. */
bool isolate_scoreboard_update_down(struct isolate_scoreboard *scoreboard, uint64_t now_ms);

#endif
