/* SPDX-License-Identifier: Apache-2.0 */
/* What workers share of all backends but their limits: the statistics that are shown, and their health. */
#ifndef MK_UPSTREAM_STATS_H
#define MK_UPSTREAM_STATS_H

#include <monkey/text.h>
#include <monkey/upstream.h>

/* What is not shown of a backend. */
struct mk_stats_health {
    uint64_t key;                     /* of upstream and server; 0: unused */
    uint64_t down_until_ms;           /* CLOCK_MONOTONIC, in all processes the same; 0: it did not fail */
    uint64_t up_since_ms;             /* when it came back */
    uint32_t fails;                   /* in a row */
    uint32_t is_check_failed;         /* its last HealthFall health checks failed */
    uint32_t checks_in_a_row;         /* with another result than that says */
    uint64_t trouble_ms, nameless_ms; /* when the log was last told of these: */
    uint32_t trouble;                 /* the error by which it failed last; 0: it answers */
    uint32_t is_nameless;             /* its name does not resolve */
};

struct mk_stats_memory {
    uint64_t n_shown; /* how many configurations were shown */
    struct mk_stats_health of[MK_UPSTREAM_SERVERS];
};

struct mk_stats {
    struct mk_upstream_stats_table *shown;
    struct mk_stats_memory *memory;
};

/* The slots that a configuration uses once it serves. */
struct mk_stats_plan {
    uint64_t keys[MK_UPSTREAM_SERVERS]; /* 0: none */
};

/* What was shown before a configuration did. */
struct mk_stats_former {
    uint64_t n_shown; /* with that configuration; 0: it has not */
    uint32_t pid;     /* of the master */
    struct {
        uint32_t backup, weight, max;
        char first; /* of the server's name; NUL: it was hidden */
    } of[MK_UPSTREAM_SERVERS];
};

/* In the master. False: no memory, which is reported. */
bool mk_stats_open(struct mk_stats *s, struct mk_config *config);
/* In the master, or in a process that only tries a configuration out: the slot of a backend, the same for the
 * same names as long as it lives. Nothing changes. False: all are taken. */
bool mk_stats_find(const struct mk_stats *s, struct mk_stats_plan *plan, mk_str upstream, mk_str server,
                   unsigned *slot);
/* In the master: the configuration was accepted, and that is the backend. True: the slot was another one's. */
bool mk_stats_set(struct mk_stats *s, unsigned slot, mk_str upstream, mk_str server);
/* In the master: the configuration does not have this backend any more. */
void mk_stats_hide(struct mk_stats *s, unsigned slot);
/* In the master: before the backends of a configuration are shown, */
void mk_stats_save(struct mk_stats *s, struct mk_stats_former *former);
/* and when it goes: if none was shown since, it never served, and the one before it serves on. */
void mk_stats_restore(struct mk_stats *s, const struct mk_stats_former *former);

/* For mk_limit.on_empty, with the stats: what a worker counted in this row is over. */
void mk_stats_clear_row(void *stats, unsigned row);

static inline struct mk_upstream_info *mk_stats_info(const struct mk_stats *s, unsigned slot)
{
    return &s->shown->servers[slot].info;
}

static inline struct mk_stats_health *mk_stats_health(const struct mk_stats *s, unsigned slot)
{
    return &s->memory->of[slot];
}

static inline struct mk_upstream_stats_cell *mk_stats_cell(const struct mk_stats *s, unsigned slot,
                                                           unsigned row)
{
    return &s->shown->servers[slot].of[row];
}

#endif
