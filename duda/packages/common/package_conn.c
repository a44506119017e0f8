/* SPDX-License-Identifier: Apache-2.0 */
/* Requests wait for an unavailable server for up to Timeout. When attempts have failed for that long, waiting
 * requests fail, and new ones fail at once until the next attempt. */
#include "common/package_conn.h"

#include <errno.h>
#include <monkey/text.h>
#include <string.h>

enum { FIRST_RETRY_MAX_MS = 50, BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 1000, SERVER_SHOWN = 120 };

/* ---- States ---- */

enum {
    OPENING = MK_SM_TO(PACKAGE_CONN_RESOLVING) | MK_SM_TO(PACKAGE_CONN_CONNECTING) |
              MK_SM_TO(PACKAGE_CONN_HANDSHAKE),
    IS_UP = MK_SM_TO(PACKAGE_CONN_READY) | MK_SM_TO(PACKAGE_CONN_EXCLUSIVE)
};

static bool is_in_states(const struct package_conn *l, unsigned states)
{
    return states >> l->state.state & 1;
}

static const struct mk_sm_states states = {
    MK_SM_STATE(PACKAGE_CONN_DOWN, "down",
                MK_SM_TO(PACKAGE_CONN_RESOLVING) | MK_SM_TO(PACKAGE_CONN_CONNECTING)),
    MK_SM_STATE(PACKAGE_CONN_RESOLVING, "resolving",
                MK_SM_TO(PACKAGE_CONN_DOWN) | MK_SM_TO(PACKAGE_CONN_CONNECTING)),
    MK_SM_STATE(PACKAGE_CONN_CONNECTING, "connecting",
                MK_SM_TO(PACKAGE_CONN_DOWN) | MK_SM_TO(PACKAGE_CONN_RESOLVING) |
                    MK_SM_TO(PACKAGE_CONN_HANDSHAKE) | MK_SM_TO(PACKAGE_CONN_READY)),
    MK_SM_STATE(PACKAGE_CONN_HANDSHAKE, "greeting",
                MK_SM_TO(PACKAGE_CONN_DOWN) | MK_SM_TO(PACKAGE_CONN_READY)),
    MK_SM_STATE(PACKAGE_CONN_READY, "up", MK_SM_TO(PACKAGE_CONN_DOWN) | MK_SM_TO(PACKAGE_CONN_EXCLUSIVE)),
    MK_SM_STATE(PACKAGE_CONN_EXCLUSIVE, "exclusive",
                MK_SM_TO(PACKAGE_CONN_DOWN) | MK_SM_TO(PACKAGE_CONN_READY)),
};

/* Checked invariant: a closed connection has no unanswered requests, because closing fails them. */
static const char *broken(const void *owner)
{
    const struct package_conn *l = owner;
    bool may_have_sent =
        package_conn_is_in_state(l, PACKAGE_CONN_READY) || package_conn_is_in_state(l, PACKAGE_CONN_DOWN);
    return l->sent.first && !may_have_sent ? "no request is sent but while it is up" : NULL;
}

static const struct mk_sm_machine machine = {
    .name = "link", .states = &states, .n_states = PACKAGE_CONN_EXCLUSIVE + 1, .invariant = broken};

void package_conn_set_state(struct package_conn *l, enum package_conn_state to)
{
    mk_sm_move(&l->state, &machine, l, to);
}

bool package_conn_is_opening(const struct package_conn *l)
{
    return is_in_states(l, OPENING);
}

bool package_conn_is_ready(const struct package_conn *l)
{
    return is_in_states(l, IS_UP);
}

bool package_conn_is_unavailable(const struct package_conn *l)
{
    return l->failing_ms && mk_worker_now_ms(l->worker) - l->failing_ms >= l->timeout_ms;
}

/* ---- Error messages ---- */

const char *package_conn_strerror(int e)
{
    return e == -EHOSTUNREACH ? "its name does not resolve, or it is down" : strerror(-e);
}

static void append_subject(const struct package_conn *l, struct mk_buf *text)
{
    mk_buf_addf(text, "[%s] %.*s", l->ops->section, MK_STR_ARG(l->name));
    if (!l->server.len)
        return;
    mk_buf_add(text, MK_STR(", "));
    mk_buf_add(text, mk_str_first(l->server, SERVER_SHOWN));
}

/* Libraries may report an error in several lines. */
void package_conn_set_error(struct package_conn *l, mk_str reason)
{
    struct mk_buf text = mk_buf_fixed(l->why, sizeof l->why - 1);
    append_subject(l, &text);
    mk_buf_add(&text, MK_STR(": "));
    l->reason_at = text.len;
    mk_buf_add(&text, mk_str_first(mk_str_trim(reason), sizeof l->why - 1 - text.len));
    for (size_t i = l->reason_at; i < text.len; i++)
        l->why[i] = l->why[i] == '\n' ? ' ' : l->why[i];
    while (text.len > l->reason_at && l->why[text.len - 1] == ' ')
        text.len--;
    l->why[text.len] = 0;
}

void package_conn_copy_error(struct package_conn *l, const struct package_conn *from)
{
    memcpy(l->why, from->why, sizeof l->why);
    l->reason_at = from->reason_at;
}

const char *package_conn_error_reason(const struct package_conn *l)
{
    return l->why + l->reason_at;
}

/* ---- Timers ---- */

static uint64_t min_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool wants_connection(const struct package_conn *l)
{
    return l->waiting.first || l->stays_up;
}

static uint64_t next_deadline(const struct package_conn *l)
{
    uint64_t due = UINT64_MAX;
    if (package_conn_is_opening(l))
        due = l->since_ms + l->timeout_ms;
    else if (package_conn_is_in_state(l, PACKAGE_CONN_DOWN) && wants_connection(l))
        due = l->retry_ms;
    if (l->sent.first)
        due = min_time(due, l->sent.first->due_ms);
    if (l->waiting.first)
        due = min_time(due, l->waiting.first->due_ms);
    return due;
}

/* Lazy timer: most requests leave it alone. If it fires too early, it is set again for the next deadline. */
void package_conn_set_timer(struct package_conn *l)
{
    uint64_t due = next_deadline(l), now;
    if (due == UINT64_MAX || (l->timer_ms && l->timer_ms <= due))
        return;
    now = mk_worker_now_ms(l->worker);
    l->timer_ms = due;
    mk_timer_set(&l->timer, l->worker,
                 due <= now              ? 1
                 : due - now < INT32_MAX ? (uint32_t)(due - now)
                                         : INT32_MAX);
}

static void fail_timeout(struct package_conn *l, const char *reason)
{
    if (l->ops->on_late)
        l->ops->on_late(l);
    package_conn_fail(l, -ETIMEDOUT, reason);
}

/* Replies arrive in order: if the first is late, all are, and the connection is unusable. */
static void on_due(struct mk_timer *t)
{
    struct package_conn *l = MK_CONTAINER(t, struct package_conn, timer);
    uint64_t now = mk_worker_now_ms(l->worker);
    struct package_request *r;
    l->timer_ms = 0;
    if (package_conn_is_opening(l) && now - l->since_ms >= l->timeout_ms)
        fail_timeout(l, "it does not answer within Timeout");
    if (l->sent.first && l->sent.first->due_ms <= now)
        fail_timeout(l, "no reply within Timeout");
    while ((r = package_request_queue_pop_due(&l->waiting, now)))
        l->ops->finish(l, r, -ETIMEDOUT, false);
    if (wants_connection(l))
        package_conn_open(l);
    package_conn_set_timer(l);
}

/* ---- Closing ---- */

static void fail_requests(struct package_conn *l, struct package_request_queue *all, int error)
{
    struct package_request *r;
    bool is_sent = all == &l->sent;
    while ((r = package_request_queue_pop(all)))
        l->ops->finish(l, r, error, is_sent);
}

/* A server that restarts loses all clients at the same moment; they must not also reconnect at the same
 * moment. So the first delay, and half of each later one, is random. */
static uint32_t retry_delay(uint32_t backoff_ms)
{
    uint32_t number;
    mk_random(&number, sizeof number);
    return backoff_ms ? backoff_ms - number % (backoff_ms / 2 + 1) : number % (FIRST_RETRY_MAX_MS + 1);
}

/* A lost connection is replaced soon; failed attempts are retried with exponential backoff. */
static void schedule_retry(struct package_conn *l, bool was_up)
{
    uint64_t now = mk_worker_now_ms(l->worker);
    l->backoff_ms = was_up ? 0 : l->backoff_ms ? l->backoff_ms * 2 : BACKOFF_MIN_MS;
    if (l->backoff_ms > BACKOFF_MAX_MS)
        l->backoff_ms = BACKOFF_MAX_MS;
    l->retry_ms = now + retry_delay(l->backoff_ms);
    if (was_up || l->failing_ms)
        return;
    l->failing_ms = now;
    mk_worker_log(l->worker, MK_LOG_ERROR, "%s", l->why);
}

void package_conn_fail(struct package_conn *l, int error, const char *reason)
{
    bool was_up = package_conn_is_ready(l);
    if (package_conn_is_in_state(l, PACKAGE_CONN_DOWN)) /* another event closed it first */
        return;
    package_conn_set_error(l, mk_str_from_c(reason));
    l->ops->close(l);
    package_conn_set_state(l, PACKAGE_CONN_DOWN);
    schedule_retry(l, was_up);
    fail_requests(l, &l->sent, error);
    if (package_conn_is_unavailable(l) ||
        error == -ENOKEY /* permissions do not change while requests wait */ || (l->fails_fast && !was_up))
        fail_requests(l, &l->waiting, error);
    else if (l->waiting.first)
        mk_deferred_post(l->turn);
    if (l->ops->on_down)
        l->ops->on_down(l, error);
    package_conn_set_timer(l);
}

void package_conn_fail_errno(struct package_conn *l, int e)
{
    package_conn_fail(l, package_conn_map_errno(e), package_conn_strerror(e));
}

/* ---- Opening ---- */

void package_conn_stay_up(struct package_conn *l)
{
    l->stays_up = true;
    if (package_conn_is_in_state(l, PACKAGE_CONN_DOWN))
        mk_deferred_post(l->turn);
}

void package_conn_open(struct package_conn *l)
{
    uint64_t now = mk_worker_now_ms(l->worker);
    if (package_conn_is_in_state(l, PACKAGE_CONN_DOWN) && now >= l->retry_ms) {
        l->since_ms = now;
        l->ops->connect(l);
    }
    package_conn_set_timer(l);
}

void package_conn_mark_ready(struct package_conn *l)
{
    char buf[PACKAGE_CONN_ERROR_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    package_conn_set_state(l, PACKAGE_CONN_READY);
    if (l->failing_ms) {
        append_subject(l, &text);
        mk_worker_log(l->worker, MK_LOG_INFO, "%.*s is back", MK_STR_ARG(mk_buf_str(&text)));
    }
    l->failing_ms = 0;
    mk_deferred_post(l->turn);
    if (l->ops->on_up)
        l->ops->on_up(l);
}

/* ---- Requests ---- */

static void on_deferred(void *ctx)
{
    struct package_conn *l = ctx;
    if (wants_connection(l) && !package_conn_is_in_state(l, PACKAGE_CONN_READY))
        package_conn_open(l); /* package_conn_mark_ready() sends the waiting requests */
    else if (l->waiting.first)
        l->ops->send(l);
}

int package_conn_check_capacity(const struct package_conn *l, size_t max)
{
    if (l->waiting.n + l->sent.n >= max)
        return -EBUSY;
    return package_conn_is_unavailable(l) && mk_worker_now_ms(l->worker) < l->retry_ms ? -ECONNREFUSED : 0;
}

void package_conn_enqueue(struct package_conn *l, struct package_request *r)
{
    package_request_queue_push(&l->waiting, r);
    mk_deferred_post(l->turn);
    package_conn_set_timer(l);
}

void package_conn_add_sent(struct package_conn *l, struct package_request *r)
{
    package_request_queue_push(&l->sent, r);
    package_conn_set_timer(l);
}

void package_conn_finish_first_sent(struct package_conn *l, int error)
{
    l->ops->finish(l, package_request_queue_pop(&l->sent), error, true);
}

/* ---- Lifetime ---- */

int package_conn_init(struct package_conn *l, struct mk_worker *w, const struct package_conn_ops *ops,
                      mk_str name, uint32_t timeout_ms)
{
    l->ops = ops;
    l->worker = w;
    l->name = name;
    l->timeout_ms = timeout_ms;
    mk_sm_init(&l->state, &machine, PACKAGE_CONN_DOWN);
    l->turn = mk_deferred_new(w, on_deferred, l);
    mk_timer_init(&l->timer, on_due);
    return l->turn ? 0 : -ENOMEM;
}

void package_conn_fini(struct package_conn *l)
{
    if (!l->ops)
        return;
    l->ops->close(l);
    if (!package_conn_is_in_state(l, PACKAGE_CONN_DOWN))
        package_conn_set_state(l, PACKAGE_CONN_DOWN);
    fail_requests(l, &l->sent, -ECANCELED);
    fail_requests(l, &l->waiting, -ECANCELED);
    mk_deferred_free(l->turn);
    mk_timer_stop(&l->timer);
    l->ops = NULL;
}
