/* SPDX-License-Identifier: Apache-2.0 */
/* What the routes of services were asked: counted by those that have routes, such as Duda, and read by those
 * that show them. */
#ifndef MONKEY_ROUTES_H
#define MONKEY_ROUTES_H

#include <monkey/str.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How many routes can be counted, the bytes of names and patterns with their NUL, and the ranges of
 * durations. */
enum { MK_ROUTES_MAX = 1024, MK_ROUTES_NAME = 64, MK_ROUTES_PATTERN = 192, MK_ROUTES_BUCKETS = 42 };

/** A route, and its counts since the server started. Names may be cut. */
struct mk_route_info {
    char service[MK_ROUTES_NAME];
    char method[MK_ROUTES_NAME];         /**< `*`: all */
    char pattern[MK_ROUTES_PATTERN];     /**< host and path, such as `/items/:id` */
    uint64_t failures;                   /**< answers with a status of 500 and above */
    uint64_t cancelled;                  /**< the client has left */
    uint64_t crashes;                    /**< of its handler */
    uint64_t micros;                     /**< all durations together */
    uint64_t buckets[MK_ROUTES_BUCKETS]; /**< durations by their length: see mk_route_bucket_end() */
};

/** The memory that all workers share: pass its name and size to mk_config_shared(). Unused pages take no
 * memory. Workers write to it at any time, so read it with mk_route_info_at(). */
#define MK_ROUTES_BOARD "routes/board"
/** Likewise a uint32_t. 1: a developer tries the services, so that no route is closed after crashes. Set in
 * load(), read in host(). */
#define MK_ROUTES_TRIED "routes/tried"
struct mk_routes_board {
    uint32_t n; /**< places used so far */
    struct mk_route_info routes[MK_ROUTES_MAX];
};

/** The bucket of a duration. The first one is for less than 64 us; then each doubling has two. */
static inline unsigned mk_route_bucket(uint64_t micros)
{
    if (micros < 64)
        return 0;
    unsigned log2 = 63u - MK_API_CAST(unsigned, __builtin_clzll(micros));
    unsigned i = 2 * (log2 - 6) + MK_API_CAST(unsigned, micros >> (log2 - 1) & 1) + 1;
    return i < MK_ROUTES_BUCKETS ? i : MK_ROUTES_BUCKETS - 1;
}

/** The microseconds that all durations of a bucket are below: 64, 96, 128, 192, ...; 0 for the last bucket,
 * which has no end. */
static inline uint64_t mk_route_bucket_end(unsigned i)
{
    if (i + 1 >= MK_ROUTES_BUCKETS)
        return 0;
    return i % 2 ? UINT64_C(96) << i / 2 : UINT64_C(64) << i / 2;
}

/** Counts a request that has ended. From any worker. */
static inline void mk_route_count(struct mk_route_info *r, uint64_t micros, bool failed, bool cancelled)
{
    __atomic_fetch_add(&r->buckets[mk_route_bucket(micros)], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&r->micros, micros, __ATOMIC_RELAXED);
    if (failed)
        __atomic_fetch_add(&r->failures, 1, __ATOMIC_RELAXED);
    if (cancelled)
        __atomic_fetch_add(&r->cancelled, 1, __ATOMIC_RELAXED);
}

/**
 * Gets the i-th route of all services; false: there are no more. Routes that the configuration has no longer
 * are among them. Any plugin may call it:
 *
 *     board = mk_config_shared(config, MK_ROUTES_BOARD, sizeof *board);
 *     struct mk_route_info info;
 *     for (size_t i = 0; mk_route_info_at(board, i, &info); i++)
 *         print(&info);
 */
static inline bool mk_route_info_at(const struct mk_routes_board *b, size_t i, struct mk_route_info *out)
{
    if (i >= __atomic_load_n(&b->n, __ATOMIC_ACQUIRE) || i >= MK_ROUTES_MAX)
        return false;
    const struct mk_route_info *r = &b->routes[i];
    memcpy(out, r, offsetof(struct mk_route_info, failures)); /* the names stay as they are */
    out->failures = __atomic_load_n(&r->failures, __ATOMIC_RELAXED);
    out->cancelled = __atomic_load_n(&r->cancelled, __ATOMIC_RELAXED);
    out->crashes = __atomic_load_n(&r->crashes, __ATOMIC_RELAXED);
    out->micros = __atomic_load_n(&r->micros, __ATOMIC_RELAXED);
    for (unsigned k = 0; k < MK_ROUTES_BUCKETS; k++)
        out->buckets[k] = __atomic_load_n(&r->buckets[k], __ATOMIC_RELAXED);
    return true;
}

/** How many requests of the route have ended. */
static inline uint64_t mk_route_requests(const struct mk_route_info *r)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < MK_ROUTES_BUCKETS; i++)
        n += r->buckets[i];
    return n;
}

/** The microseconds that `thousandths` of 1000 requests took less than, as far as buckets can tell; 0: there
 * were none. */
static inline uint64_t mk_route_quantile(const struct mk_route_info *r, unsigned thousandths)
{
    uint64_t n = mk_route_requests(r), rank = (n * thousandths + 999) / 1000, below = 0;
    for (unsigned i = 0; i < MK_ROUTES_BUCKETS && n; i++) {
        below += r->buckets[i];
        if (below >= rank)
            return mk_route_bucket_end(i < MK_ROUTES_BUCKETS - 1 ? i : i - 1);
    }
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
