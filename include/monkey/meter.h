/* SPDX-License-Identifier: Apache-2.0 */
/* Meters: what plugins count of calls to a store, a database or another server, for the plugins that show it.
 */
#ifndef MONKEY_METER_H
#define MONKEY_METER_H

#include <monkey/config.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Meters, worker processes, and bytes of names with their NUL. */
enum { MK_METERS = 256, MK_METER_WORKERS = 128, MK_METER_KIND = 16, MK_METER_NAME = 64 };

/** What one worker has counted. It alone writes there. */
struct mk_meter_part {
    uint64_t calls, failures, micros; /**< that have ended; micros: the sum of their time */
    uint32_t waiting;                 /**< that have begun and not ended */
};

/** One meter: of the section `name` of a kind. */
struct mk_meter {
    char kind[MK_METER_KIND], name[MK_METER_NAME];
    struct mk_meter_part of[MK_METER_WORKERS];
};

/** All of them: pass its name and size to mk_config_shared(). Unused pages take no memory. */
#define MK_METER_BOARD "meters"
struct mk_meter_board {
    uint32_t n; /**< used so far */
    struct mk_meter meters[MK_METERS];
};

/** Copies as much of a text as fits, and a NUL. */
static inline void mk_meter_copy(char *to, size_t size, mk_str text)
{
    size_t n = text.len < size ? text.len : size - 1;
    memset(to, 0, size);
    if (n)
        memcpy(to, text.p, n);
}

/**
 * The meter of that kind and name; the first call makes it. It lives as long as the master. In load() alone.
 * NULL: there are too many, or memory is out; all functions below take that.
 *
 *     settings->meter = mk_meter_get(config, MK_STR("kv"), settings->name);
 */
static inline struct mk_meter *mk_meter_get(struct mk_config *config, mk_str kind, mk_str name)
{
    struct mk_meter_board *b = MK_API_CAST(
        struct mk_meter_board *, mk_config_shared(config, MK_METER_BOARD, sizeof(struct mk_meter_board)));
    char kind_room[MK_METER_KIND], name_room[MK_METER_NAME];
    uint32_t n = b ? __atomic_load_n(&b->n, __ATOMIC_ACQUIRE) : 0;
    mk_meter_copy(kind_room, sizeof kind_room, kind);
    mk_meter_copy(name_room, sizeof name_room, name);
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(b->meters[i].kind, kind_room, sizeof kind_room) == 0 &&
            memcmp(b->meters[i].name, name_room, sizeof name_room) == 0)
            return &b->meters[i];
    if (!b || n == MK_METERS)
        return MK_API_NULL;
    memcpy(b->meters[n].kind, kind_room, sizeof kind_room);
    memcpy(b->meters[n].name, name_room, sizeof name_room);
    __atomic_store_n(&b->n, n + 1, __ATOMIC_RELEASE);
    return &b->meters[n];
}

/** What that worker (mk_worker_index()) counts; NULL for NULL, and for workers beyond the last. */
static inline struct mk_meter_part *mk_meter_of(struct mk_meter *m, unsigned worker)
{
    return m && worker < MK_METER_WORKERS ? &m->of[worker] : MK_API_NULL;
}

/** In worker_start: the worker that was here before may have died with calls that wait. */
static inline void mk_meter_start(struct mk_meter_part *p)
{
    if (p)
        __atomic_store_n(&p->waiting, 0, __ATOMIC_RELAXED);
}

/** A call begins. */
static inline void mk_meter_begin(struct mk_meter_part *p)
{
    if (p)
        __atomic_store_n(&p->waiting, p->waiting + 1, __ATOMIC_RELAXED);
}

/** It has ended after so many microseconds, well or not. */
static inline void mk_meter_end(struct mk_meter_part *p, uint64_t micros, bool failed)
{
    if (!p)
        return;
    __atomic_store_n(&p->waiting, p->waiting - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&p->calls, p->calls + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&p->failures, p->failures + failed, __ATOMIC_RELAXED);
    __atomic_store_n(&p->micros, p->micros + micros, __ATOMIC_RELAXED);
}

/** The sum over all workers of the i-th meter, whose texts are copied, too; false: there are no more. */
static inline bool mk_meter_at(const struct mk_meter_board *b, size_t i, char kind[MK_METER_KIND],
                               char name[MK_METER_NAME], struct mk_meter_part *sum)
{
    if (i >= __atomic_load_n(&b->n, __ATOMIC_ACQUIRE) || i >= MK_METERS)
        return false;
    const struct mk_meter *m = &b->meters[i];
    memcpy(kind, m->kind, MK_METER_KIND);
    memcpy(name, m->name, MK_METER_NAME);
    kind[MK_METER_KIND - 1] = name[MK_METER_NAME - 1] = 0;
    memset(sum, 0, sizeof *sum);
    for (size_t w = 0; w < MK_METER_WORKERS; w++) {
        sum->calls += __atomic_load_n(&m->of[w].calls, __ATOMIC_RELAXED);
        sum->failures += __atomic_load_n(&m->of[w].failures, __ATOMIC_RELAXED);
        sum->micros += __atomic_load_n(&m->of[w].micros, __ATOMIC_RELAXED);
        sum->waiting += __atomic_load_n(&m->of[w].waiting, __ATOMIC_RELAXED);
    }
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
