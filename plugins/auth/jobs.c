/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"

#include "credentials.h"
#include "verify.h"

#include <crypt.h>
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

/* The helper threads are there for cold files, too, and a hash may want 16 MB. */
enum { RUNNING_MAX = 2, WAITING_MAX = 128 };

struct auth_job {
    struct auth_job *next;
    struct auth_desk *desk;
    struct auth_wait *waits;
    const struct auth_place *place;
    struct auth_counted counted;
    uint8_t mac[AUTH_MAC_LEN];
    bool exists, running, matches;
    struct crypt_data *data; /* only while it runs */
    char password[AUTH_PASSWORD_MAX + 1];
    char hash[AUTH_HASH_TEXT_MAX + 1];
};

struct auth_desk *auth_desk_open(struct mk_worker *worker, struct auth_shared *shared)
{
    struct auth_desk *d = mk_mem_zalloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->worker = worker;
    d->shared = shared;
    mk_random(d->key, sizeof d->key);
    return d;
}

static void free_job(struct auth_job *j)
{
    if (j->data)
        explicit_bzero(j->data, sizeof *j->data);
    mk_mem_free(j->data);
    explicit_bzero(j, sizeof *j);
    mk_mem_free(j);
}

static void unlink_job(struct auth_job *j)
{
    struct auth_desk *d = j->desk;
    struct auth_job **at = &d->first, *before = NULL;
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

static void answer(struct auth_job *j, enum auth_answer a)
{
    struct auth_wait *next;
    for (struct auth_wait *w = j->waits; w; w = next) {
        next = w->next;
        w->job = NULL;
        w->next = NULL;
        w->answer = a;
        mk_request_resume(w->request);
    }
    j->waits = NULL;
}

/* Ends a job before it began, so nothing waits for its result. */
static void give_up(struct auth_job *j)
{
    auth_attempts_give_back(j->desk->shared, &j->counted, mk_worker_now(j->desk->worker));
    unlink_job(j);
    answer(j, AUTH_BUSY);
    free_job(j);
}

/* Requests are gone by now, and the worker has waited for what ran. */
void auth_desk_close(struct auth_desk *d)
{
    if (!d)
        return;
    while (d->first)
        give_up(d->first);
    auth_cache_free(d->cache);
    explicit_bzero(d, sizeof *d);
    mk_mem_free(d);
}

static void work(void *ctx)
{
    struct auth_job *j = ctx;
    j->matches = auth_verify(j->hash, j->password, j->data);
    explicit_bzero(j->password, sizeof j->password);
}

static void start(struct auth_desk *d);

static void remember(struct auth_desk *d, const struct auth_job *j)
{
    if (!j->place->cache_ms)
        return;
    if (!d->cache)
        d->cache = auth_cache_new();
    if (d->cache)
        auth_cache_add(d->cache, j->mac, mk_worker_now_ms(d->worker));
}

static void done(void *ctx)
{
    struct auth_job *j = ctx;
    struct auth_desk *d = j->desk;
    bool right = j->matches && j->exists;
    unlink_job(j);
    if (right) {
        remember(d, j);
        auth_attempts_give_back(d->shared, &j->counted, mk_worker_now(d->worker));
    }
    answer(j, right ? AUTH_RIGHT : AUTH_WRONG);
    free_job(j);
    start(d);
}

static bool run(struct auth_job *j)
{
    j->data = mk_mem_zalloc(1, sizeof *j->data);
    if (!j->data)
        return false;
    j->running = true;
    j->desk->n_running++;
    j->desk->n_waiting--;
    if (mk_worker_offload(j->desk->worker, work, done, j) == 0)
        return true;
    j->running = false;
    j->desk->n_running--;
    j->desk->n_waiting++;
    mk_mem_free(j->data);
    j->data = NULL;
    return false;
}

/* Starts the next jobs. Gives up those that cannot start when no running job is left whose end would retry
 * them. */
static void start(struct auth_desk *d)
{
    struct auth_job *next;
    for (struct auth_job *j = d->first; j && d->n_running < RUNNING_MAX; j = next) {
        next = j->next;
        if (j->running || run(j))
            continue;
        if (d->n_running)
            return;
        give_up(j);
    }
}

void auth_desk_mac(const struct auth_desk *d, struct auth_question *q)
{
    mk_str parts[] = {mk_str_of((const char *)&q->place->users, sizeof q->place->users), q->user,
                      q->password};
    auth_hash_mac(d->key, parts, MK_LEN(parts), q->mac);
}

bool auth_desk_remembers(const struct auth_desk *d, const struct auth_question *q)
{
    return d->cache && q->place->cache_ms &&
           auth_cache_has(d->cache, q->mac, mk_worker_now_ms(d->worker), q->place->cache_ms);
}

struct auth_job *auth_desk_find(const struct auth_desk *d, const struct auth_question *q)
{
    struct auth_job *j = d->first;
    while (j && (j->place != q->place || j->counted.hash != q->counted.hash ||
                 memcmp(j->mac, q->mac, AUTH_MAC_LEN) != 0))
        j = j->next;
    return j;
}

void auth_wait_join(struct auth_wait *wait, struct auth_job *j, const struct auth_question *q)
{
    wait->place = q->place;
    wait->answer = AUTH_UNKNOWN;
    wait->job = j;
    wait->next = j->waits;
    j->waits = wait;
}

static struct auth_job *new_job(struct auth_desk *d, const struct auth_question *q)
{
    struct auth_job *j = mk_mem_zalloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->desk = d;
    j->place = q->place;
    j->counted = q->counted;
    j->exists = q->exists;
    memcpy(j->mac, q->mac, AUTH_MAC_LEN);
    memcpy(j->password, q->password.p, q->password.len); /* zeroes are behind both */
    memcpy(j->hash, q->known->hash.p, q->known->hash.len);
    return j;
}

bool auth_desk_ask(struct auth_desk *d, const struct auth_question *q, struct auth_wait *wait)
{
    struct auth_job *j = d->n_waiting < WAITING_MAX ? new_job(d, q) : NULL;
    if (!j) {
        auth_attempts_give_back(d->shared, &q->counted, mk_worker_now(d->worker));
        return false;
    }
    auth_wait_join(wait, j, q);
    if (d->last)
        d->last->next = j;
    else
        d->first = j;
    d->last = j;
    d->n_waiting++;
    start(d);
    return true;
}

void auth_wait_leave(struct auth_wait *wait)
{
    struct auth_job *j = wait->job;
    if (!j)
        return;
    struct auth_wait **at = &j->waits;
    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    wait->job = NULL;
    if (!j->waits && !j->running)
        give_up(j);
}
