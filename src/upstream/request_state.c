/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_state.h"

#include "upstream/conn.h"

#define TO(state)  MK_STATE_TO(MK_UPSTREAM_REQUEST_##state)
#define OUT(state) MK_STATE_TO(MK_UPSTREAM_REQUEST_OUTPUT_##state)

static const struct mk_state_table states = {
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_WAITING, "waiting", TO(OPEN) | TO(FAILED)),
    /* Back to WAITING: the request is resent over another connection. */
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_OPEN, "open", TO(WAITING) | TO(CONTENT) | TO(UPGRADED) | TO(FAILED)),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_CONTENT, "content", TO(DONE) | TO(FAILED)),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_UPGRADED, "upgraded", TO(FAILED)),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_DONE, "done", 0),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_FAILED, "failed", 0),
};

static const struct mk_state_table output_states = {
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_OUTPUT_NONE, "none", OUT(HELD) | OUT(SENDING) | OUT(ENDING)),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_OUTPUT_HELD, "held", OUT(SENDING) | OUT(BROKEN) | OUT(NONE)),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_OUTPUT_SENDING, "sending", OUT(ENDING) | OUT(BROKEN) | OUT(NONE)),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_OUTPUT_ENDING, "ending", OUT(SENT) | OUT(BROKEN) | OUT(NONE)),
    /* Back to SENDING: the protocol changed, and there is more to send. */
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_OUTPUT_SENT, "sent", OUT(SENDING) | OUT(NONE)),
    MK_STATE_ROW(MK_UPSTREAM_REQUEST_OUTPUT_BROKEN, "broken", OUT(NONE)),
};

static const char *state_problem(const void *owner)
{
    const struct mk_upstream_request *c = owner;
    bool is_over =
        c->state.current == MK_UPSTREAM_REQUEST_DONE || c->state.current == MK_UPSTREAM_REQUEST_FAILED;
    return is_over && c->conn ? "its connection was released" : NULL;
}

static const char *output_state_problem(const void *owner)
{
    const struct mk_upstream_request *c = owner;
    return c->output.current != MK_UPSTREAM_REQUEST_OUTPUT_NONE && !c->conn ? "it has a connection" : NULL;
}

const struct mk_state_machine mk_upstream_request_machine = {"upstream request", &states,
                                                             MK_UPSTREAM_REQUEST_STATES, state_problem};
const struct mk_state_machine mk_upstream_request_output_machine = {
    "upstream request output", &output_states, MK_UPSTREAM_REQUEST_OUTPUT_STATES, output_state_problem};

void mk_upstream_request_state_release(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how)
{
    if (!c->conn)
        return;
    if (c->output.current != MK_UPSTREAM_REQUEST_OUTPUT_NONE)
        mk_upstream_request_state_move_output(c, MK_UPSTREAM_REQUEST_OUTPUT_NONE);
    c->server_name = mk_upstream_conn_server_name(c->conn);
    c->server = mk_upstream_conn_server(c->conn);
    mk_upstream_conn_release(c->conn, how);
    c->conn = NULL;
    c->awaits = MK_UPSTREAM_REQUEST_AWAITS_NOTHING;
}

/* Is the response an event stream, which has no end and would only fill a spool? Comparing the length of the
 * name rules out most headers. */
bool mk_upstream_request_state_is_event_stream(const struct mk_upstream_request *c)
{
    const mk_str name = MK_STR("Content-Type"), events = MK_STR("text/event-stream");
    for (unsigned i = 0; i < c->n_fields; i++) {
        mk_str value = c->fields[i].value;
        if (c->fields[i].name.len != name.len || value.len < events.len || value.p[4] != '/' ||
            !mk_str_eq_nocase(c->fields[i].name, name))
            continue;
        return mk_str_eq_nocase(mk_str_trim(mk_str_cut(&value, ';')), events);
    }
    return false;
}

/* Can the server still be working on the request? */
static bool server_may_be_working(const struct mk_upstream_request *c)
{
    return mk_upstream_request_state_is_connected(c) &&
           (c->sent > 0 || c->state.current == MK_UPSTREAM_REQUEST_UPGRADED) &&
           !mk_upstream_conn_has_eof(c->conn);
}

void mk_upstream_request_state_cancel(struct mk_upstream_request *c, enum mk_upstream_conn_disposition how)
{
    if (c->conn && server_may_be_working(c)) {
        bool has_head = c->state.current == MK_UPSTREAM_REQUEST_CONTENT;
        bool streams = has_head ? mk_upstream_request_state_is_event_stream(c)
                                : c->state.current == MK_UPSTREAM_REQUEST_UPGRADED;
        mk_upstream_conn_mark_cancelled(c->conn, c->limits.response_timeout_ms, streams);
    }
    mk_upstream_request_state_release(c, how);
}

void mk_upstream_request_state_fail(struct mk_upstream_request *c, int error, const char *problem,
                                    enum mk_upstream_conn_disposition how)
{
    mk_upstream_request_state_cancel(c, how);
    mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_FAILED);
    c->error = error;
    c->problem = problem;
}

void mk_upstream_request_state_end_output(struct mk_upstream_request *c, int error, const char *problem)
{
    mk_upstream_request_state_move_output(c, MK_UPSTREAM_REQUEST_OUTPUT_BROKEN);
    mk_upstream_conn_assume_readable(c->conn); /* a response may have arrived without an event */
    c->error = error;
    c->problem = problem;
}

/* ---- Timeouts ---- */

static uint32_t awaited_timeout_ms(const struct mk_upstream_request *c)
{
    switch ((enum mk_upstream_request_wait_kind)c->awaits) {
    case MK_UPSTREAM_REQUEST_AWAITS_RESPONSE:
        return c->limits.response_timeout_ms;
    case MK_UPSTREAM_REQUEST_AWAITS_ROOM:
    case MK_UPSTREAM_REQUEST_AWAITS_PIECE:
        return c->limits.read_timeout_ms;
    case MK_UPSTREAM_REQUEST_AWAITS_NOTHING:
        break;
    }
    return 0;
}

void mk_upstream_request_timer_init(struct mk_upstream_request *c, void (*on_due)(struct mk_timer *t),
                                    void (*on_later)(void *c))
{
    mk_timer_init(&c->timer, on_due);
    c->on_later = on_later;
}

void mk_upstream_request_timer_fini(struct mk_upstream_request *c)
{
    mk_timer_stop(&c->timer);
    mk_deferred_free(c->later);
}

/* If memory runs out, the next event continues the work. */
void mk_upstream_request_timer_run_later(struct mk_upstream_request *c)
{
    if (!c->later)
        c->later = mk_deferred_new(c->worker, c->on_later, c);
    if (c->later)
        mk_deferred_post(c->later);
}

static void set_timer_at(struct mk_upstream_request *c, uint64_t now, uint64_t due)
{
    c->timer_due_ms = due;
    mk_timer_set(&c->timer, c->worker, due > now ? (uint32_t)(due - now) : 0);
}

void mk_upstream_request_timer_set(struct mk_upstream_request *c, enum mk_upstream_request_wait_kind what)
{
    if (c->awaits == what)
        return;
    c->awaits = (uint8_t)what;
    uint32_t limit = awaited_timeout_ms(c);
    if (!limit && !c->total_due_ms)
        return;
    uint64_t now = mk_worker_now_ms(c->worker);
    c->since_ms = now;
    if (limit && (!c->timer_due_ms || now + limit < c->timer_due_ms))
        set_timer_at(c, now, now + limit);
}

void mk_upstream_request_timer_set_head(struct mk_upstream_request *c)
{
    bool has_part = c->input.reply.text.len > 0;
    mk_upstream_request_timer_set(c, has_part ? MK_UPSTREAM_REQUEST_AWAITS_PIECE
                                              : MK_UPSTREAM_REQUEST_AWAITS_RESPONSE);
}

void mk_upstream_request_timer_set_check(struct mk_upstream_request *c, uint32_t ms)
{
    uint64_t now = mk_worker_now_ms(c->worker);
    c->next_check_ms = now + ms;
    if (!c->timer_due_ms || c->next_check_ms < c->timer_due_ms)
        set_timer_at(c, now, c->next_check_ms);
}

bool mk_upstream_request_timer_is_check(struct mk_upstream_request *c)
{
    bool is_due = c->next_check_ms && c->next_check_ms <= mk_worker_now_ms(c->worker);
    c->timer_due_ms = 0;
    if (is_due)
        c->next_check_ms = 0;
    return is_due;
}

void mk_upstream_request_timer_start_total(struct mk_upstream_request *c)
{
    uint64_t now = mk_worker_now_ms(c->worker);
    c->total_due_ms = now + c->limits.total_timeout_ms;
    if (!c->timer_due_ms || c->total_due_ms < c->timer_due_ms)
        set_timer_at(c, now, c->total_due_ms);
}

/* The time at which the limit for all tries ends; UINT64_MAX: there is none, or the response has begun. */
static uint64_t total_due_ms(const struct mk_upstream_request *c)
{
    bool is_before_response = c->state.current == MK_UPSTREAM_REQUEST_WAITING ||
                              (c->state.current == MK_UPSTREAM_REQUEST_OPEN && !c->input.reply.text.len);
    return c->total_due_ms && is_before_response ? c->total_due_ms : UINT64_MAX;
}

bool mk_upstream_request_timer_is_total(const struct mk_upstream_request *c)
{
    return total_due_ms(c) <= mk_worker_now_ms(c->worker);
}

bool mk_upstream_request_timer_is_server_hung(const struct mk_upstream_request *c)
{
    uint64_t waited_ms = mk_worker_now_ms(c->worker) - c->since_ms;
    return c->state.current == MK_UPSTREAM_REQUEST_OPEN && c->awaits == MK_UPSTREAM_REQUEST_AWAITS_RESPONSE &&
           waited_ms >= c->limits.total_timeout_ms / 2;
}

bool mk_upstream_request_timer_expired(struct mk_upstream_request *c)
{
    uint32_t limit = awaited_timeout_ms(c);
    uint64_t now = mk_worker_now_ms(c->worker), total = total_due_ms(c),
             awaited = limit ? c->since_ms + limit : UINT64_MAX, due = awaited < total ? awaited : total,
             next = c->next_check_ms && c->next_check_ms < due ? c->next_check_ms : due;
    c->timer_due_ms = 0;
    if (due > now && next != UINT64_MAX)
        set_timer_at(c, now, next);
    return due <= now;
}

const char *mk_upstream_request_timer_text(const struct mk_upstream_request *c)
{
    switch ((enum mk_upstream_request_wait_kind)c->awaits) {
    case MK_UPSTREAM_REQUEST_AWAITS_ROOM:
        return "the server does not read the request";
    case MK_UPSTREAM_REQUEST_AWAITS_RESPONSE:
        return "the server does not answer";
    case MK_UPSTREAM_REQUEST_AWAITS_PIECE:
    case MK_UPSTREAM_REQUEST_AWAITS_NOTHING:
        break;
    }
    return "the server stopped in the middle of its response";
}
