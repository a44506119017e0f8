/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include "subrequest.h"

#include <errno.h>
#include <monkey/mem.h>

/* The rest of a response is read up to this length, so that its connection can be reused. */
enum { DRAINED_MAX = 64 * 1024, MAX_TRIES = 2 };

struct forward_auth_query {
    struct forward_auth_query *next, **link;
    struct forward_auth_worker *of;
    const struct forward_auth_location *place;
    struct mk_upstream_request *upstream; /* NULL: not started */
    struct mk_timer timer;
    struct forward_auth_waiter *waiters;
    const struct forward_auth_waiter *starter; /* while its hook starts the query; NULL: later */
    struct mk_addr client;
    char key[FORWARD_AUTH_KEY_LEN];
    bool is_shared;   /* the key is set: the answer applies to other requests */
    bool is_answered; /* the rest of the response is drained */
    size_t drained;
};

static void query_free(struct forward_auth_query *q)
{
    *q->link = q->next;
    if (q->next)
        q->next->link = q->link;
    mk_timer_stop(&q->timer);
    mk_upstream_request_free(q->upstream);
    mk_mem_free(q);
}

/* ---- The answer ---- */

static struct forward_auth_waiter *first_waiter(struct forward_auth_query *q)
{
    struct forward_auth_waiter *w = q->waiters;
    while (w && w->next)
        w = w->next;
    return w;
}

/* May all waiters get the answer? Cookies, and redirections to a login page, belong to a single client: equal
 * requests may come from several clients without a session. */
static bool is_for_all(const struct forward_auth_answer *answer)
{
    return !answer || answer->status >= 500 || (answer->status == 200 && !answer->sets_cookies);
}

/* Without memory for the answer, it is absent, and the waiters get an error. */
static void give_answer_to(struct forward_auth_waiter *w, struct forward_auth_answer *answer)
{
    w->query = NULL;
    w->asks_alone = !is_for_all(answer) && w->next; /* the last one in the list came first */
    w->answer = answer && !w->asks_alone ? forward_auth_answer_ref(answer) : NULL;
}

static void give_answer(struct forward_auth_query *q, struct forward_auth_answer *answer)
{
    struct forward_auth_waiter *w;
    q->is_answered = true;
    if (answer && q->is_shared)
        forward_auth_cache_store(&q->of->cache, q->key, answer, mk_worker_now_ms(q->of->worker),
                                 q->place->cache_ms);
    while ((w = q->waiters)) {
        q->waiters = w->next;
        give_answer_to(w, answer);
        if (w != q->starter)
            mk_request_resume(w->request);
    }
    forward_auth_answer_unref(answer);
}

static void log_unexpected_status(struct forward_auth_query *q)
{
    mk_request_log(first_waiter(q)->request, MK_LOG_ERROR, "forward-auth: %.*s answered with status %u: 502",
                   MK_STR_ARG(q->place->url), mk_upstream_request_status(q->upstream));
}

static void answer_from_head(struct forward_auth_query *q)
{
    struct forward_auth_answer *answer = forward_auth_answer_new(q->place, q->upstream);
    if (answer && answer->status >= 500)
        log_unexpected_status(q);
    give_answer(q, answer);
}

/* A fault of the client's request, such as a head that is too long for the service, remains one. */
static void answer_from_error(struct forward_auth_query *q, int e)
{
    mk_upstream_request_log_error(q->upstream, first_waiter(q)->request);
    give_answer(q, forward_auth_answer_new_error(mk_upstream_status_for_error(e)));
}

/* Reads the head. False: it is incomplete. */
static bool read_head(struct forward_auth_query *q)
{
    int e;
    while ((e = mk_upstream_request_head(q->upstream)) == 1) /* an interim response */
        continue;
    if (e == -EAGAIN)
        return false;
    if (e)
        answer_from_error(q, e);
    else
        answer_from_head(q);
    return true;
}

/* Frees the query, and returns false, when its response has ended or is too long. */
static bool drain_response(struct forward_auth_query *q)
{
    char buf[4096];
    ssize_t n = 1;
    while (q->drained < DRAINED_MAX && (n = mk_upstream_request_read(q->upstream, buf, sizeof buf)) > 0)
        q->drained += (size_t)n;
    if (n == -EAGAIN && q->drained < DRAINED_MAX)
        return true;
    query_free(q);
    return false;
}

/* False: the query has ended, and is freed. */
static bool advance_query(struct forward_auth_query *q)
{
    return (!q->is_answered && !read_head(q)) || drain_response(q);
}

static void on_ready(void *ctx)
{
    (void)advance_query(ctx);
}

static void on_timeout(struct mk_timer *timer)
{
    struct forward_auth_query *q =
        (struct forward_auth_query *)((char *)timer - offsetof(struct forward_auth_query, timer));
    if (!q->is_answered) {
        mk_request_log(first_waiter(q)->request, MK_LOG_ERROR,
                       "forward-auth: %.*s did not answer within %u ms: 504", MK_STR_ARG(q->place->url),
                       (unsigned)q->place->timeout_ms);
        give_answer(q, forward_auth_answer_new_error(504));
    }
    query_free(q);
}

/* ---- Asking ---- */

static struct forward_auth_query *find_shared_query(const struct forward_auth_worker *w, const char *key)
{
    struct forward_auth_query *q = w->queries[(unsigned char)key[0]];
    while (q && (!q->is_shared || q->is_answered || memcmp(q->key, key, sizeof q->key)))
        q = q->next;
    return q;
}

static void join_query(struct forward_auth_query *q, struct forward_auth_waiter *waiter)
{
    waiter->query = q;
    waiter->next = q->waiters;
    q->waiters = waiter;
}

static struct forward_auth_query *query_new(struct forward_auth_worker *w,
                                            const struct forward_auth_waiter *waiter, const char *key)
{
    struct forward_auth_query *q = mk_mem_zalloc(1, sizeof *q);
    if (!q)
        return NULL;
    q->of = w;
    q->place = waiter->place;
    q->client = *mk_request_client_addr(waiter->request);
    q->is_shared = key;
    if (key)
        memcpy(q->key, key, sizeof q->key);
    struct forward_auth_query **list = &w->queries[(unsigned char)q->key[0]];
    q->next = *list;
    q->link = list;
    if (q->next)
        q->next->link = &q->next;
    *list = q;
    mk_timer_init(&q->timer, on_timeout);
    return q;
}

/* The query may outlive the request that starts it, so it keeps the address of the client. */
static bool query_start(struct forward_auth_query *q, struct mk_request *request)
{
    struct mk_upstream_request_options options = {.upstream = q->place->upstream,
                                                  .protocol = MK_UPSTREAM_PROTOCOL_HTTP,
                                                  .is_idempotent = true,
                                                  .limits = {.max_tries = MAX_TRIES},
                                                  .conn = {.server = -1, .client = &q->client}};
    if (!forward_auth_subrequest_build(request, q->place, &options))
        return false;
    q->upstream = mk_upstream_request_start(q->of->worker, &options, on_ready, q);
    return q->upstream;
}

/* The response may already be there: the waiter then has its answer at once. */
static bool start_query(struct forward_auth_worker *w, struct forward_auth_waiter *waiter, const char *key)
{
    struct forward_auth_query *q = query_new(w, waiter, key);
    if (!q)
        return false;
    if (!query_start(q, waiter->request)) {
        query_free(q);
        return false;
    }
    join_query(q, waiter);
    q->starter = waiter;
    mk_timer_set(&q->timer, w->worker, (uint32_t)q->place->timeout_ms);
    if (advance_query(q))
        q->starter = NULL;
    return true;
}

bool forward_auth_query_ask(struct forward_auth_worker *w, struct forward_auth_waiter *waiter)
{
    char key[FORWARD_AUTH_KEY_LEN];
    bool has_key =
        waiter->place->cache_ms && forward_auth_subrequest_key(waiter->request, waiter->place,
                                                               mk_str_of(w->secret, sizeof w->secret), key);
    if (!has_key || waiter->asks_alone)
        return start_query(w, waiter, NULL);
    struct forward_auth_answer *cached = forward_auth_cache_find(&w->cache, key, mk_worker_now_ms(w->worker));
    if (cached) {
        waiter->answer = forward_auth_answer_ref(cached);
        return true;
    }
    struct forward_auth_query *q = find_shared_query(w, key);
    if (!q)
        return start_query(w, waiter, key);
    join_query(q, waiter);
    return true;
}

void forward_auth_waiter_leave(struct forward_auth_waiter *waiter)
{
    struct forward_auth_query *q = waiter->query;
    forward_auth_answer_unref(waiter->answer);
    waiter->answer = NULL;
    waiter->query = NULL;
    if (!q)
        return;
    struct forward_auth_waiter **at = &q->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    if (!q->waiters && !q->is_answered)
        query_free(q);
}

/* ---- Workers ---- */

struct forward_auth_worker *forward_auth_worker_new(struct mk_worker *worker)
{
    struct forward_auth_worker *w = mk_mem_zalloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->worker = worker;
    mk_random(w->secret, sizeof w->secret);
    return w;
}

void forward_auth_worker_free(struct forward_auth_worker *w)
{
    if (!w)
        return;
    for (unsigned i = 0; i < FORWARD_AUTH_QUERY_LISTS; i++)
        while (w->queries[i])
            query_free(w->queries[i]);
    forward_auth_cache_clear(&w->cache);
    mk_mem_free(w);
}
