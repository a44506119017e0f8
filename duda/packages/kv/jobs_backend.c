/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as entries: each step is a batch that checks the values it has read, and is retried if another worker
 * was faster. Keys of the queue `shop:mail`:
 *
 *     jobs/shop:mail/j/ID         number of tries, a blank, and the record; not for failed jobs
 *     jobs/shop:mail/w/TIME/ID    waits until TIME
 *     jobs/shop:mail/r/ID         end of the lease, a blank, and its owner
 *     jobs/shop:mail/x/ID         record of a failed job
 *     jobs/shop:mail/u/UNIQUE     ID of the job that owns the unique text */
#include "jobs_backend.h"

#include <duda/memory.h>
#include <errno.h>
#include <monkey/text.h>

#include "raw.h"

enum { TIME_DIGITS = 16, CHOICES = 8, TRIES_MAX = 100 };

static uint64_t due_time_ms(struct duda_jobs_due due)
{
    return due.at_ms ? due.at_ms : mk_clock_unix_ms() + due.delay_ms;
}

static mk_str job_entry_key(struct duda_ctx *d, mk_str queue, char table, mk_str id)
{
    return duda_sprintf(d, "jobs/%.*s/%c/%.*s", MK_STR_ARG(queue), table, MK_STR_ARG(id));
}

static mk_str waiting_entry_key(struct duda_ctx *d, mk_str queue, uint64_t due, mk_str id)
{
    return duda_sprintf(d, "jobs/%.*s/w/%016llx/%.*s", MK_STR_ARG(queue), (unsigned long long)due,
                        MK_STR_ARG(id));
}

/* Does not use printf: strings that clients have chosen may be long and contain any bytes, even NULs. */
static mk_str concat_strings(struct duda_ctx *d, mk_str head, mk_str tail)
{
    char *both = head.p ? duda_alloc(d, head.len + tail.len) : NULL;
    if (!both)
        return MK_STR_NULL;
    memcpy(both, head.p, head.len);
    if (tail.len)
        memcpy(both + head.len, tail.p, tail.len);
    return mk_str_of(both, head.len + tail.len);
}

static mk_str unique_entry_key(struct duda_ctx *d, mk_str queue, mk_str unique)
{
    return concat_strings(d, job_entry_key(d, queue, 'u', MK_STR("")), unique);
}

static mk_str format_job_entry(struct duda_ctx *d, unsigned tries, mk_str record)
{
    return concat_strings(d, duda_sprintf(d, "%u ", tries), record);
}

/* Parses the number at the start of *text, and moves *text past the blank that follows. */
static uint64_t parse_leading_number(mk_str *text)
{
    uint64_t n = 0;
    return mk_num_parse(mk_str_cut(text, ' '), &n) ? n : 0;
}

/* ---- Enqueueing ---- */

static int kv_jobs_enqueue(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str record,
                           mk_str unique, struct duda_jobs_due due)
{
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_expect(b, job_entry_key(d, queue, 'j', id), MK_STR_NULL);
    if (unique.p) {
        kv_raw_expect(b, unique_entry_key(d, queue, unique), MK_STR_NULL);
        kv_raw_set(b, unique_entry_key(d, queue, unique), id, 0);
    }
    kv_raw_set(b, job_entry_key(d, queue, 'j', id), format_job_entry(d, 0, record), 0);
    kv_raw_set(b, waiting_entry_key(d, queue, due_time_ms(due), id), MK_STR(""), 0);
    int e = kv_raw_commit(d, b, NULL);
    return e == -ESTALE ? -EEXIST : e;
}

/* ---- Dequeueing ---- */

/* The first due jobs. If another worker takes the first one, this worker picks one at random, so that the
 * workers do not all compete for the same job. */
struct due_lookup {
    struct duda_ctx *d;
    uint64_t now, next;
    mk_str keys[CHOICES];
    unsigned n;
};

static bool find_due_entry(void *ctx, mk_str key, mk_str value)
{
    struct due_lookup *l = ctx;
    uint64_t due = 0;
    (void)value;
    size_t slash = mk_str_find_last(key, '/');
    if (slash == MK_STR_NONE || slash < TIME_DIGITS)
        return true;
    for (unsigned i = 0; i < TIME_DIGITS; i++) {
        int digit = mk_char_hex(key.p[slash - TIME_DIGITS + i]);
        due = due << 4 | (unsigned)(digit < 0 ? 0 : digit);
    }
    if (due > l->now) {
        l->next = due - l->now;
        return false;
    }
    l->keys[l->n++] = duda_strdup(l->d, key);
    return l->n < CHOICES;
}

static int dequeue_job(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str waiting, mk_str token,
                       uint64_t lease_ms, struct duda_jobs_dequeued *out)
{
    mk_str id = mk_str_skip(waiting, mk_str_find_last(waiting, '/') + 1), old;
    int e = kv_raw_get(d, s->ctx, job_entry_key(d, queue, 'j', id), &old);
    if (e)
        return e == -ENOENT ? -ESTALE : e;
    mk_str rest = old;
    out->id = id;
    out->attempts = (unsigned)parse_leading_number(&rest) + 1;
    out->record = rest;
    out->now_ms = mk_clock_unix_ms();
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_expect(b, waiting, MK_STR(""));
    kv_raw_delete(b, waiting);
    kv_raw_set(b, job_entry_key(d, queue, 'j', id), format_job_entry(d, out->attempts, rest), 0);
    kv_raw_set(
        b, job_entry_key(d, queue, 'r', id),
        duda_sprintf(d, "%llu %.*s", (unsigned long long)(mk_clock_unix_ms() + lease_ms), MK_STR_ARG(token)),
        0);
    return kv_raw_commit(d, b, NULL);
}

/* ---- Jobs of dead workers ---- */

struct expired_lease {
    struct duda_ctx *d;
    uint64_t now, next;
    mk_str key, value;
};

static bool find_expired_lease(void *ctx, mk_str key, mk_str value)
{
    struct expired_lease *l = ctx;
    mk_str rest = value;
    uint64_t end = parse_leading_number(&rest);
    if (end > l->now) {
        l->next = end - l->now < l->next ? end - l->now : l->next;
        return true;
    }
    l->key = duda_strdup(l->d, key);
    l->value = duda_strdup(l->d, value);
    return false;
}

static int requeue_job(struct duda_ctx *d, struct duda_store *s, mk_str queue, const struct expired_lease *l)
{
    mk_str id = mk_str_skip(l->key, mk_str_find_last(l->key, '/') + 1);
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_expect(b, l->key, l->value);
    kv_raw_delete(b, l->key);
    kv_raw_set(b, waiting_entry_key(d, queue, l->now, id), MK_STR(""), 0);
    return kv_raw_commit(d, b, NULL);
}

static int requeue_expired_jobs(struct duda_ctx *d, struct duda_store *s, mk_str queue, uint64_t *next)
{
    for (;;) {
        struct expired_lease l = {.d = d, .now = mk_clock_unix_ms(), .next = UINT64_MAX};
        int e = kv_raw_scan(d, s->ctx, job_entry_key(d, queue, 'r', MK_STR("")), MK_STR_NULL,
                            find_expired_lease, &l);
        *next = l.next;
        if (e || !l.key.p)
            return e;
        e = requeue_job(d, s, queue, &l);
        if (e && e != -ESTALE)
            return e;
    }
}

static int kv_jobs_dequeue(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str token,
                           uint64_t lease_ms, struct duda_jobs_dequeued *out)
{
    uint64_t next = 0;
    int e = requeue_expired_jobs(d, s, queue, &next);
    for (unsigned i = 0; !e && i < TRIES_MAX; i++) {
        unsigned char any = 0;
        struct due_lookup l = {.d = d, .now = mk_clock_unix_ms(), .next = UINT64_MAX};
        e = kv_raw_scan(d, s->ctx, job_entry_key(d, queue, 'w', MK_STR("")), MK_STR_NULL, find_due_entry, &l);
        out->next_ms = l.next < next ? l.next : next;
        if (e || !l.n)
            return e ? e : -ENOENT;
        if (i) /* another worker has taken the first job: picks one at random */
            mk_random(&any, 1);
        e = dequeue_job(d, s, queue, l.keys[any % l.n], token, lease_ms, out);
        if (e != -ESTALE)
            return e;
        e = 0;
    }
    out->next_ms = 0;
    return e ? e : -ENOENT;
}

/* ---- Running jobs ---- */

/* Gets the value of our lease. The caller's batch requires that this value has not changed. Returns -ESTALE
 * if the lease is lost. */
static int get_own_lease(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str token,
                         mk_str *own)
{
    int e = kv_raw_get(d, s->ctx, job_entry_key(d, queue, 'r', id), own);
    mk_str rest = *own;
    if (e)
        return e == -ENOENT ? -ESTALE : e;
    parse_leading_number(&rest);
    return mk_str_eq(rest, token) ? 0 : -ESTALE;
}

static int kv_jobs_renew(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str token,
                         uint64_t lease_ms)
{
    mk_str own;
    int e = get_own_lease(d, s, queue, id, token, &own);
    if (e)
        return e;
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_expect(b, job_entry_key(d, queue, 'r', id), own);
    kv_raw_set(
        b, job_entry_key(d, queue, 'r', id),
        duda_sprintf(d, "%llu %.*s", (unsigned long long)(mk_clock_unix_ms() + lease_ms), MK_STR_ARG(token)),
        0);
    return kv_raw_commit(d, b, NULL);
}

/* Returns whether the job still owns its unique key. After it failed, another job may have taken the key. */
static bool owns_unique_key(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str unique)
{
    mk_str owner;
    return unique.p && kv_raw_get(d, s->ctx, unique_entry_key(d, queue, unique), &owner) == 0 &&
           mk_str_eq(owner, id);
}

static int kv_jobs_complete(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str token,
                            mk_str record, mk_str unique, enum duda_jobs_outcome outcome,
                            struct duda_jobs_due due)
{
    mk_str own, old = MK_STR_NULL;
    int e = get_own_lease(d, s, queue, id, token, &own);
    e = e ? e : kv_raw_get(d, s->ctx, job_entry_key(d, queue, 'j', id), &old);
    if (e)
        return e;
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_expect(b, job_entry_key(d, queue, 'r', id), own);
    kv_raw_delete(b, job_entry_key(d, queue, 'r', id));
    if (outcome == DUDA_JOBS_RETRY || outcome == DUDA_JOBS_REQUEUE) {
        unsigned tries = outcome == DUDA_JOBS_REQUEUE ? 0 : (unsigned)parse_leading_number(&old);
        kv_raw_set(b, job_entry_key(d, queue, 'j', id), format_job_entry(d, tries, record), 0);
        kv_raw_set(b, waiting_entry_key(d, queue, due_time_ms(due), id), MK_STR(""), 0);
    } else {
        kv_raw_delete(b, job_entry_key(d, queue, 'j', id));
        if (owns_unique_key(d, s, queue, id, unique))
            kv_raw_delete(b, unique_entry_key(d, queue, unique));
    }
    if (outcome == DUDA_JOBS_FAILED)
        kv_raw_set(b, job_entry_key(d, queue, 'x', id), record, 0);
    return kv_raw_commit(d, b, NULL);
}

/* Uses the clock of the machine, which all its workers share. */
static int kv_jobs_now(struct duda_ctx *d, struct duda_store *s, mk_str queue, uint64_t *ms)
{
    (void)d, (void)s, (void)queue;
    *ms = mk_clock_unix_ms();
    return 0;
}

/* ---- Inspection ---- */

static bool count_entry(void *ctx, mk_str key, mk_str value)
{
    (void)key, (void)value;
    ++*(uint64_t *)ctx;
    return true;
}

static int count_table_entries(struct duda_ctx *d, struct duda_store *s, mk_str queue, char table,
                               uint64_t *n)
{
    *n = 0;
    return kv_raw_scan(d, s->ctx, job_entry_key(d, queue, table, MK_STR("")), MK_STR_NULL, count_entry, n);
}

static int kv_jobs_count(struct duda_ctx *d, struct duda_store *s, mk_str queue, struct duda_job_counts *out)
{
    int e = count_table_entries(d, s, queue, 'w', &out->waiting);
    e = e ? e : count_table_entries(d, s, queue, 'r', &out->running);
    return e ? e : count_table_entries(d, s, queue, 'x', &out->failed);
}

struct kv_jobs_list {
    bool (*each)(void *ctx, mk_str id, mk_str record);
    void *ctx;
};

static bool list_entry(void *ctx, mk_str key, mk_str value)
{
    const struct kv_jobs_list *l = ctx;
    return l->each(l->ctx, mk_str_skip(key, mk_str_find_last(key, '/') + 1), value);
}

static int kv_jobs_list(struct duda_ctx *d, struct duda_store *s, mk_str queue,
                        bool (*each)(void *ctx, mk_str id, mk_str record), void *ctx)
{
    struct kv_jobs_list l = {each, ctx};
    return kv_raw_scan(d, s->ctx, job_entry_key(d, queue, 'x', MK_STR("")), MK_STR_NULL, list_entry, &l);
}

static int kv_jobs_get_failed(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id,
                              mk_str *record)
{
    return kv_raw_get(d, s->ctx, job_entry_key(d, queue, 'x', id), record);
}

/* Starts a batch that removes a failed job, unless its record changes before the commit. */
static struct duda_kv_batch *new_batch_without_failed_job(struct duda_ctx *d, struct duda_store *s,
                                                          mk_str queue, mk_str id, mk_str record)
{
    struct duda_kv_batch *b = duda_kv_batch_new(s->ctx);
    kv_raw_expect(b, job_entry_key(d, queue, 'x', id), record);
    kv_raw_delete(b, job_entry_key(d, queue, 'x', id));
    return b;
}

/* Returns -ESTALE if another handler changes the failed job or its unique key during the call. */
static int retry_job(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str unique)
{
    mk_str record, owner;
    int e = kv_jobs_get_failed(d, s, queue, id, &record);
    if (e)
        return e;
    e = unique.p ? kv_raw_get(d, s->ctx, unique_entry_key(d, queue, unique), &owner) : -ENOENT;
    if (e != -ENOENT)
        return e ? e : -EEXIST;
    struct duda_kv_batch *b = new_batch_without_failed_job(d, s, queue, id, record);
    if (unique.p) {
        kv_raw_expect(b, unique_entry_key(d, queue, unique), MK_STR_NULL);
        kv_raw_set(b, unique_entry_key(d, queue, unique), id, 0);
    }
    kv_raw_set(b, job_entry_key(d, queue, 'j', id), format_job_entry(d, 0, record), 0);
    kv_raw_set(b, waiting_entry_key(d, queue, mk_clock_unix_ms(), id), MK_STR(""), 0);
    return kv_raw_commit(d, b, NULL);
}

static int kv_jobs_retry(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id, mk_str unique)
{
    int e;
    do
        e = retry_job(d, s, queue, id, unique);
    while (e == -ESTALE);
    return e;
}

static int kv_jobs_remove(struct duda_ctx *d, struct duda_store *s, mk_str queue, mk_str id)
{
    mk_str record;
    int e = kv_jobs_get_failed(d, s, queue, id, &record);
    e = e ? e : kv_raw_commit(d, new_batch_without_failed_job(d, s, queue, id, record), NULL);
    return e == -ESTALE ? -ENOENT : e;
}

const struct duda_jobs_ops duda_kv_jobs_backend = {.enqueue = kv_jobs_enqueue,
                                                   .dequeue = kv_jobs_dequeue,
                                                   .renew = kv_jobs_renew,
                                                   .complete = kv_jobs_complete,
                                                   .now = kv_jobs_now,
                                                   .count = kv_jobs_count,
                                                   .list = kv_jobs_list,
                                                   .get_failed = kv_jobs_get_failed,
                                                   .retry = kv_jobs_retry,
                                                   .remove = kv_jobs_remove};
