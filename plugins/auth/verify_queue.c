/* SPDX-License-Identifier: Apache-2.0 */
#include "verify_queue.h"

#include "credentials.h"
#include "verify.h"

#include <crypt.h>
#include <monkey/mem.h>
#include <monkey/text.h>

/* The limit is low because helper threads also read uncached files, and a hash may need 16 MB. */
enum { RUNNING_MAX = 2, WAITING_MAX = 128 };

struct auth_verify_job {
    struct auth_verify_job *next;
    struct auth_verify_queue *queue;
    struct auth_waiter *waits;
    const struct auth_location *place;
    struct auth_attempt_key counted;
    uint8_t mac[AUTH_MAC_LEN];
    bool exists, running, matches;
    struct crypt_data *data; /* allocated only while the job runs */
    char password[AUTH_PASSWORD_MAX + 1];
    char hash[AUTH_HASH_TEXT_MAX + 1];
};

struct auth_verify_queue *auth_verify_queue_new(struct mk_worker *worker, struct auth_shared *shared)
{
    struct auth_verify_queue *d = mk_mem_zalloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->worker = worker;
    d->shared = shared;
    mk_random(d->key, sizeof d->key);
    return d;
}

static void free_job(struct auth_verify_job *j)
{
    if (j->data)
        explicit_bzero(j->data, sizeof *j->data);
    mk_mem_free(j->data);
    explicit_bzero(j, sizeof *j);
    mk_mem_free(j);
}

static void unlink_job(struct auth_verify_job *j)
{
    struct auth_verify_queue *d = j->queue;
    struct auth_verify_job **at = &d->first, *before = NULL;
    while (*at != j) {
        before = *at;
        at = &before->next;
    }
    *at = j->next;
    if (d->last == j)
        d->last = before;
    if (j->running)
        d->n_running--;
    else
        d->n_waiting--;
}

static void resume_waiters(struct auth_verify_job *j, enum auth_verify_result a)
{
    struct auth_waiter *next;
    for (struct auth_waiter *w = j->waits; w; w = next) {
        next = w->next;
        w->job = NULL;
        w->next = NULL;
        w->result = a;
        mk_request_resume(w->request);
    }
    j->waits = NULL;
}

/* Rejects a job that has not started, and its waiting requests. */
static void reject_job(struct auth_verify_job *j)
{
    auth_attempts_refund(j->queue->shared, &j->counted, mk_worker_now(j->queue->worker));
    unlink_job(j);
    resume_waiters(j, AUTH_RESULT_BUSY);
    free_job(j);
}

/* Call this after all requests have ended and the worker has waited for running jobs. */
void auth_verify_queue_free(struct auth_verify_queue *d)
{
    if (!d)
        return;
    while (d->first)
        reject_job(d->first);
    auth_cache_free(d->cache);
    explicit_bzero(d, sizeof *d);
    mk_mem_free(d);
}

static void verify_in_thread(void *ctx)
{
    struct auth_verify_job *j = ctx;
    j->matches = auth_verify(j->hash, j->password, j->data);
    explicit_bzero(j->password, sizeof j->password);
}

static void start_queued_jobs(struct auth_verify_queue *d);

static void cache_verified(struct auth_verify_queue *d, const struct auth_verify_job *j)
{
    if (!j->place->cache_ms)
        return;
    if (!d->cache)
        d->cache = auth_cache_new();
    if (d->cache)
        auth_cache_add(d->cache, j->mac, mk_worker_now_ms(d->worker));
}

static void on_verified(void *ctx)
{
    struct auth_verify_job *j = ctx;
    struct auth_verify_queue *d = j->queue;
    bool right = j->matches && j->exists;
    unlink_job(j);
    if (right) {
        cache_verified(d, j);
        auth_attempts_refund(d->shared, &j->counted, mk_worker_now(d->worker));
    }
    resume_waiters(j, right ? AUTH_RESULT_VALID : AUTH_RESULT_INVALID);
    free_job(j);
    start_queued_jobs(d);
}

static bool offload_job(struct auth_verify_job *j)
{
    j->data = mk_mem_zalloc(1, sizeof *j->data);
    if (!j->data)
        return false;
    j->running = true;
    j->queue->n_running++;
    j->queue->n_waiting--;
    if (mk_worker_offload(j->queue->worker, verify_in_thread, on_verified, j) == 0)
        return true;
    j->running = false;
    j->queue->n_running--;
    j->queue->n_waiting++;
    mk_mem_free(j->data);
    j->data = NULL;
    return false;
}

/* Starts the next jobs. If they cannot start, and no running job would retry them when it ends, rejects
 * them. */
static void start_queued_jobs(struct auth_verify_queue *d)
{
    struct auth_verify_job *next;
    for (struct auth_verify_job *j = d->first; j && d->n_running < RUNNING_MAX; j = next) {
        next = j->next;
        if (j->running || offload_job(j))
            continue;
        if (d->n_running)
            return;
        reject_job(j);
    }
}

void auth_verify_queue_set_mac(const struct auth_verify_queue *d, struct auth_verify_query *q)
{
    mk_str parts[] = {mk_str_of((const char *)&q->place->users, sizeof q->place->users), q->user,
                      q->password};
    auth_hash_mac(d->key, parts, MK_LEN(parts), q->mac);
}

bool auth_verify_queue_is_cached(const struct auth_verify_queue *d, const struct auth_verify_query *q)
{
    return d->cache && q->place->cache_ms &&
           auth_cache_has(d->cache, q->mac, mk_worker_now_ms(d->worker), q->place->cache_ms);
}

struct auth_verify_job *auth_verify_queue_find_job(const struct auth_verify_queue *d,
                                                   const struct auth_verify_query *q)
{
    struct auth_verify_job *j = d->first;
    while (j && (j->place != q->place || j->counted.hash != q->counted.hash ||
                 memcmp(j->mac, q->mac, AUTH_MAC_LEN) != 0))
        j = j->next;
    return j;
}

void auth_waiter_join_job(struct auth_waiter *wait, struct auth_verify_job *j,
                          const struct auth_verify_query *q)
{
    wait->place = q->place;
    wait->result = AUTH_RESULT_UNKNOWN;
    wait->job = j;
    wait->next = j->waits;
    j->waits = wait;
}

static struct auth_verify_job *new_job(struct auth_verify_queue *d, const struct auth_verify_query *q)
{
    struct auth_verify_job *j = mk_mem_zalloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->queue = d;
    j->place = q->place;
    j->counted = q->counted;
    j->exists = q->exists;
    memcpy(j->mac, q->mac, AUTH_MAC_LEN);
    memcpy(j->password, q->password.p, q->password.len); /* both are NUL-terminated */
    memcpy(j->hash, q->known->hash.p, q->known->hash.len);
    return j;
}

bool auth_verify_queue_submit(struct auth_verify_queue *d, const struct auth_verify_query *q,
                              struct auth_waiter *wait)
{
    struct auth_verify_job *j = d->n_waiting < WAITING_MAX ? new_job(d, q) : NULL;
    if (!j) {
        auth_attempts_refund(d->shared, &q->counted, mk_worker_now(d->worker));
        return false;
    }
    auth_waiter_join_job(wait, j, q);
    if (d->last)
        d->last->next = j;
    else
        d->first = j;
    d->last = j;
    d->n_waiting++;
    start_queued_jobs(d);
    return true;
}

void auth_waiter_leave(struct auth_waiter *wait)
{
    struct auth_verify_job *j = wait->job;
    if (!j)
        return;
    struct auth_waiter **at = &j->waits;
    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    wait->job = NULL;
    if (!j->waits && !j->running)
        reject_job(j);
}
