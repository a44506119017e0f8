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
    CONTACTING = MK_STATE_TO(PACKAGE_CONN_RESOLVING) | MK_STATE_TO(PACKAGE_CONN_CONNECTING) |
                 MK_STATE_TO(PACKAGE_CONN_HANDSHAKE), /* within Timeout */
    OPENING = CONTACTING | MK_STATE_TO(PACKAGE_CONN_MIGRATING),
    IS_UP = MK_STATE_TO(PACKAGE_CONN_READY) | MK_STATE_TO(PACKAGE_CONN_EXCLUSIVE)
};

static bool is_in_states(const struct package_conn *conn, unsigned states)
{
    return states >> conn->state.current & 1;
}

static const struct mk_state_table states = {
    MK_STATE_ROW(PACKAGE_CONN_DOWN, "down",
                 MK_STATE_TO(PACKAGE_CONN_RESOLVING) | MK_STATE_TO(PACKAGE_CONN_CONNECTING)),
    MK_STATE_ROW(PACKAGE_CONN_RESOLVING, "resolving",
                 MK_STATE_TO(PACKAGE_CONN_DOWN) | MK_STATE_TO(PACKAGE_CONN_CONNECTING)),
    MK_STATE_ROW(PACKAGE_CONN_CONNECTING, "connecting",
                 MK_STATE_TO(PACKAGE_CONN_DOWN) | MK_STATE_TO(PACKAGE_CONN_RESOLVING) |
                     MK_STATE_TO(PACKAGE_CONN_HANDSHAKE) | MK_STATE_TO(PACKAGE_CONN_MIGRATING) |
                     MK_STATE_TO(PACKAGE_CONN_READY)),
    MK_STATE_ROW(PACKAGE_CONN_HANDSHAKE, "handshake",
                 MK_STATE_TO(PACKAGE_CONN_DOWN) | MK_STATE_TO(PACKAGE_CONN_READY)),
    MK_STATE_ROW(PACKAGE_CONN_MIGRATING, "migrating",
                 MK_STATE_TO(PACKAGE_CONN_DOWN) | MK_STATE_TO(PACKAGE_CONN_READY)),
    MK_STATE_ROW(PACKAGE_CONN_READY, "up",
                 MK_STATE_TO(PACKAGE_CONN_DOWN) | MK_STATE_TO(PACKAGE_CONN_EXCLUSIVE)),
    MK_STATE_ROW(PACKAGE_CONN_EXCLUSIVE, "exclusive",
                 MK_STATE_TO(PACKAGE_CONN_DOWN) | MK_STATE_TO(PACKAGE_CONN_READY)),
};

/* Checks that a connection that is not up has no requests in flight, because closing fails them. */
static const char *check_invariant(const void *owner)
{
    const struct package_conn *conn = owner;
    bool may_have_sent = package_conn_is_in_state(conn, PACKAGE_CONN_READY) ||
                         package_conn_is_in_state(conn, PACKAGE_CONN_DOWN);
    return conn->sent.first && !may_have_sent ? "only a connection that is up has requests in flight" : NULL;
}

static const struct mk_state_machine machine = {.name = "package connection",
                                                .states = &states,
                                                .n_states = PACKAGE_CONN_EXCLUSIVE + 1,
                                                .invariant = check_invariant};

void package_conn_set_state(struct package_conn *conn, enum package_conn_state to)
{
    mk_state_move(&conn->state, &machine, conn, to);
}

bool package_conn_is_opening(const struct package_conn *conn)
{
    return is_in_states(conn, OPENING);
}

bool package_conn_is_ready(const struct package_conn *conn)
{
    return is_in_states(conn, IS_UP);
}

bool package_conn_is_unavailable(const struct package_conn *conn)
{
    return conn->failing_ms && mk_worker_now_ms(conn->worker) - conn->failing_ms >= conn->timeout_ms;
}

/* ---- Error messages ---- */

const char *package_conn_strerror(int e)
{
    return e == -EHOSTUNREACH ? "its name cannot be resolved, or it is down" : strerror(-e);
}

static void append_subject(const struct package_conn *conn, struct mk_buf *text)
{
    mk_buf_addf(text, "[%s] %.*s", conn->ops->section, MK_STR_ARG(conn->name));
    if (!conn->server.len)
        return;
    mk_buf_add(text, MK_STR(", "));
    mk_buf_add(text, mk_str_first(conn->server, SERVER_SHOWN));
}

/* Joins the lines of an error text: libraries may report several. */
void package_conn_set_error(struct package_conn *conn, mk_str reason)
{
    struct mk_buf text = mk_buf_fixed(conn->error_text, sizeof conn->error_text - 1);
    append_subject(conn, &text);
    mk_buf_add(&text, MK_STR(": "));
    conn->reason_at = text.len;
    mk_buf_add(&text, mk_str_first(mk_str_trim(reason), sizeof conn->error_text - 1 - text.len));
    for (size_t i = conn->reason_at; i < text.len; i++)
        conn->error_text[i] = conn->error_text[i] == '\n' ? ' ' : conn->error_text[i];
    while (text.len > conn->reason_at && conn->error_text[text.len - 1] == ' ')
        text.len--;
    conn->error_text[text.len] = 0;
}

void package_conn_copy_error(struct package_conn *conn, const struct package_conn *from)
{
    memcpy(conn->error_text, from->error_text, sizeof conn->error_text);
    conn->reason_at = from->reason_at;
}

const char *package_conn_error_reason(const struct package_conn *conn)
{
    return conn->error_text + conn->reason_at;
}

/* ---- Timers ---- */

static uint64_t min_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool wants_connection(const struct package_conn *conn)
{
    return conn->waiting.first || conn->stays_up;
}

static uint64_t next_deadline(const struct package_conn *conn)
{
    uint64_t due = UINT64_MAX;
    if (is_in_states(conn, CONTACTING))
        due = conn->since_ms + conn->timeout_ms;
    else if (package_conn_is_in_state(conn, PACKAGE_CONN_DOWN) && wants_connection(conn))
        due = conn->retry_ms;
    if (conn->sent.first)
        due = min_time(due, conn->sent.first->due_ms);
    if (conn->waiting.first)
        due = min_time(due, conn->waiting.first->due_ms);
    return due;
}

/* Sets the timer lazily: most requests leave it alone, and if it fires too early, it is set again for the
 * next deadline. */
static void set_timer(struct package_conn *conn)
{
    uint64_t due = next_deadline(conn), now;
    if (due == UINT64_MAX || (conn->timer_ms && conn->timer_ms <= due))
        return;
    now = mk_worker_now_ms(conn->worker);
    conn->timer_ms = due;
    mk_timer_set(&conn->timer, conn->worker,
                 due <= now              ? 1
                 : due - now < INT32_MAX ? (uint32_t)(due - now)
                                         : INT32_MAX);
}

static void fail_timeout(struct package_conn *conn, const char *reason)
{
    if (conn->ops->on_timeout)
        conn->ops->on_timeout(conn);
    package_conn_fail(conn, -ETIMEDOUT, reason);
}

/* Replies arrive in order: if the first is late, all are, and the connection is unusable. */
static void on_timer(struct mk_timer *t)
{
    struct package_conn *conn = MK_CONTAINER(t, struct package_conn, timer);
    uint64_t now = mk_worker_now_ms(conn->worker);
    struct package_request *r;
    conn->timer_ms = 0;
    if (is_in_states(conn, CONTACTING) && now - conn->since_ms >= conn->timeout_ms)
        fail_timeout(conn, "it did not respond within Timeout");
    if (conn->sent.first && conn->sent.first->due_ms <= now)
        fail_timeout(conn, "no reply within Timeout");
    while ((r = package_request_queue_pop_due(&conn->waiting, now)))
        conn->ops->finish(conn, r, conn->failing_ms ? conn->error : -ETIMEDOUT, false);
    if (wants_connection(conn))
        package_conn_open(conn);
    set_timer(conn);
}

/* ---- Closing ---- */

static void fail_requests(struct package_conn *conn, struct package_request_queue *all, int error)
{
    struct package_request *r;
    bool is_sent = all == &conn->sent;
    while ((r = package_request_queue_pop(all)))
        conn->ops->finish(conn, r, error, is_sent);
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
static void schedule_retry(struct package_conn *conn, bool was_up)
{
    uint64_t now = mk_worker_now_ms(conn->worker);
    conn->backoff_ms = was_up ? 0 : conn->backoff_ms ? conn->backoff_ms * 2 : BACKOFF_MIN_MS;
    if (conn->backoff_ms > BACKOFF_MAX_MS)
        conn->backoff_ms = BACKOFF_MAX_MS;
    conn->retry_ms = now + retry_delay(conn->backoff_ms);
    if (was_up || conn->failing_ms)
        return;
    conn->failing_ms = now;
    mk_worker_log(conn->worker, MK_LOG_ERROR, "%s", conn->error_text);
}

void package_conn_fail(struct package_conn *conn, int error, const char *reason)
{
    bool was_up = package_conn_is_ready(conn);
    if (package_conn_is_in_state(conn, PACKAGE_CONN_DOWN)) /* already closed by an earlier event */
        return;
    package_conn_set_error(conn, mk_str_from_c(reason));
    conn->error = error;
    conn->ops->close(conn);
    package_conn_set_state(conn, PACKAGE_CONN_DOWN);
    schedule_retry(conn, was_up);
    fail_requests(conn, &conn->sent, error);
    /* -ENOKEY is permanent: a retry does not change permissions. */
    if (package_conn_is_unavailable(conn) || error == -ENOKEY || (conn->fails_fast && !was_up))
        fail_requests(conn, &conn->waiting, error);
    else if (conn->waiting.first)
        mk_deferred_post(conn->deferred);
    if (conn->ops->on_down)
        conn->ops->on_down(conn, error);
    set_timer(conn);
}

void package_conn_fail_errno(struct package_conn *conn, int e)
{
    package_conn_fail(conn, package_conn_map_errno(e), package_conn_strerror(e));
}

/* ---- Opening ---- */

void package_conn_stay_up(struct package_conn *conn)
{
    conn->stays_up = true;
    if (package_conn_is_in_state(conn, PACKAGE_CONN_DOWN))
        mk_deferred_post(conn->deferred);
}

void package_conn_open(struct package_conn *conn)
{
    uint64_t now = mk_worker_now_ms(conn->worker);
    if (package_conn_is_in_state(conn, PACKAGE_CONN_DOWN) && now >= conn->retry_ms) {
        conn->since_ms = now;
        conn->ops->connect(conn);
    }
    set_timer(conn);
}

void package_conn_mark_ready(struct package_conn *conn)
{
    char buf[PACKAGE_CONN_ERROR_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    package_conn_set_state(conn, PACKAGE_CONN_READY);
    if (conn->failing_ms) {
        append_subject(conn, &text);
        mk_worker_log(conn->worker, MK_LOG_INFO, "%.*s is back", MK_STR_ARG(mk_buf_str(&text)));
    }
    conn->failing_ms = 0;
    mk_deferred_post(conn->deferred);
    if (conn->ops->on_up)
        conn->ops->on_up(conn);
}

/* ---- Requests ---- */

static void on_deferred(void *ctx)
{
    struct package_conn *conn = ctx;
    if (wants_connection(conn) && !package_conn_is_in_state(conn, PACKAGE_CONN_READY))
        package_conn_open(conn); /* package_conn_mark_ready() sends the waiting requests */
    else if (conn->waiting.first)
        conn->ops->send(conn);
}

int package_conn_check_capacity(const struct package_conn *conn, size_t max)
{
    if (conn->waiting.n + conn->sent.n >= max)
        return -EBUSY;
    return package_conn_is_unavailable(conn) && mk_worker_now_ms(conn->worker) < conn->retry_ms
               ? -ECONNREFUSED
               : 0;
}

void package_conn_enqueue(struct package_conn *conn, struct package_request *r)
{
    package_request_queue_push(&conn->waiting, r);
    mk_deferred_post(conn->deferred);
    set_timer(conn);
}

void package_conn_add_sent(struct package_conn *conn, struct package_request *r)
{
    package_request_queue_push(&conn->sent, r);
    set_timer(conn);
}

void package_conn_finish_first_sent(struct package_conn *conn, int error)
{
    conn->ops->finish(conn, package_request_queue_pop(&conn->sent), error, true);
}

/* ---- Lifetime ---- */

int package_conn_init(struct package_conn *conn, struct mk_worker *w, const struct package_conn_ops *ops,
                      mk_str name, uint32_t timeout_ms)
{
    conn->ops = ops;
    conn->worker = w;
    conn->name = name;
    conn->timeout_ms = timeout_ms;
    mk_state_init(&conn->state, &machine, PACKAGE_CONN_DOWN);
    conn->deferred = mk_deferred_new(w, on_deferred, conn);
    mk_timer_init(&conn->timer, on_timer);
    return conn->deferred ? 0 : -ENOMEM;
}

void package_conn_fini(struct package_conn *conn)
{
    if (!conn->ops)
        return;
    conn->ops->close(conn);
    if (!package_conn_is_in_state(conn, PACKAGE_CONN_DOWN))
        package_conn_set_state(conn, PACKAGE_CONN_DOWN);
    fail_requests(conn, &conn->sent, -ECANCELED);
    fail_requests(conn, &conn->waiting, -ECANCELED);
    mk_deferred_free(conn->deferred);
    mk_timer_stop(&conn->timer);
    conn->ops = NULL;
}
