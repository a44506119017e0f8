/* SPDX-License-Identifier: Apache-2.0 */
/* A request waits for a server that is away, for as long as Timeout. Once attempts have failed for that long, requests that
 * wait fail, and new ones do at once until the next attempt. */
#include "link/link.h"

#include <errno.h>
#include <monkey/text.h>
#include <string.h>

enum { BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 1000, SERVER_SHOWN = 120 };

/* ---- States ---- */

enum {
    OPENING = MK_SM_TO(PACK_LINK_RESOLVING) | MK_SM_TO(PACK_LINK_CONNECTING) | MK_SM_TO(PACK_LINK_GREETING),
    IS_UP = MK_SM_TO(PACK_LINK_UP) | MK_SM_TO(PACK_LINK_EXCLUSIVE)
};

static bool is_one_of(const struct pack_link *l, unsigned states)
{
    return states >> l->state.is & 1;
}

static const struct mk_sm_states states = {
    MK_SM_STATE(PACK_LINK_DOWN, "down", MK_SM_TO(PACK_LINK_RESOLVING) | MK_SM_TO(PACK_LINK_CONNECTING)),
    MK_SM_STATE(PACK_LINK_RESOLVING, "resolving", MK_SM_TO(PACK_LINK_DOWN) | MK_SM_TO(PACK_LINK_CONNECTING)),
    MK_SM_STATE(PACK_LINK_CONNECTING, "connecting",
                MK_SM_TO(PACK_LINK_DOWN) | MK_SM_TO(PACK_LINK_RESOLVING) | MK_SM_TO(PACK_LINK_GREETING) |
                    MK_SM_TO(PACK_LINK_UP)),
    MK_SM_STATE(PACK_LINK_GREETING, "greeting", MK_SM_TO(PACK_LINK_DOWN) | MK_SM_TO(PACK_LINK_UP)),
    MK_SM_STATE(PACK_LINK_UP, "up", MK_SM_TO(PACK_LINK_DOWN) | MK_SM_TO(PACK_LINK_EXCLUSIVE)),
    MK_SM_STATE(PACK_LINK_EXCLUSIVE, "exclusive", MK_SM_TO(PACK_LINK_DOWN) | MK_SM_TO(PACK_LINK_UP)),
};

/* A closed link has no unanswered requests: closing fails them. */
static const char *broken(const void *owner)
{
    const struct pack_link *l = owner;
    bool may_have_sent = pack_link_is(l, PACK_LINK_UP) || pack_link_is(l, PACK_LINK_DOWN);
    return l->sent.first && !may_have_sent ? "no request is sent but while it is up" : NULL;
}

static const struct mk_sm_machine machine = {
    .name = "link", .states = &states, .n_states = PACK_LINK_EXCLUSIVE + 1, .broken = broken};

void pack_link_move(struct pack_link *l, enum pack_link_state to)
{
    mk_sm_move(&l->state, &machine, l, to);
}

bool pack_link_is_opening(const struct pack_link *l)
{
    return is_one_of(l, OPENING);
}

bool pack_link_is_up(const struct pack_link *l)
{
    return is_one_of(l, IS_UP);
}

bool pack_link_is_away(const struct pack_link *l)
{
    return l->failing_ms && mk_worker_now_ms(l->worker) - l->failing_ms >= l->timeout_ms;
}

/* ---- Words ---- */

const char *pack_link_error_text(int e)
{
    return e == -EHOSTUNREACH ? "its name does not resolve, or it is down" : strerror(-e);
}

static void add_subject(const struct pack_link *l, struct mk_buf *text)
{
    mk_buf_addf(text, "[%s] %.*s", l->ops->section, MK_STR_ARG(l->name));
    if (!l->server.len)
        return;
    mk_buf_add(text, MK_STR(", "));
    mk_buf_add(text, mk_str_first(l->server, SERVER_SHOWN));
}

/* Libraries say it in several lines. */
void pack_link_explain(struct pack_link *l, mk_str reason)
{
    struct mk_buf text = mk_buf_fixed(l->why, sizeof l->why - 1);
    add_subject(l, &text);
    mk_buf_add(&text, MK_STR(": "));
    l->reason_at = text.len;
    mk_buf_add(&text, mk_str_first(mk_str_trim(reason), sizeof l->why - 1 - text.len));
    for (size_t i = l->reason_at; i < text.len; i++)
        l->why[i] = l->why[i] == '\n' ? ' ' : l->why[i];
    while (text.len > l->reason_at && l->why[text.len - 1] == ' ')
        text.len--;
    l->why[text.len] = 0;
}

void pack_link_copy_why(struct pack_link *l, const struct pack_link *from)
{
    memcpy(l->why, from->why, sizeof l->why);
    l->reason_at = from->reason_at;
}

const char *pack_link_reason(const struct pack_link *l)
{
    return l->why + l->reason_at;
}

/* ---- The clock ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_wanted(const struct pack_link *l)
{
    return l->waiting.first || l->stays_up;
}

static uint64_t next_due(const struct pack_link *l)
{
    uint64_t due = UINT64_MAX;
    if (pack_link_is_opening(l))
        due = l->since_ms + l->timeout_ms;
    else if (pack_link_is(l, PACK_LINK_DOWN) && is_wanted(l))
        due = l->retry_ms;
    if (l->sent.first)
        due = earlier(due, l->sent.first->due_ms);
    if (l->waiting.first)
        due = earlier(due, l->waiting.first->due_ms);
    return due;
}

/* Lazy timer: most requests leave it alone. If it fires too early, it is set again for the next deadline. */
void pack_link_set_timer(struct pack_link *l)
{
    uint64_t due = next_due(l), now;
    if (due == UINT64_MAX || (l->timer_ms && l->timer_ms <= due))
        return;
    now = mk_worker_now_ms(l->worker);
    l->timer_ms = due;
    mk_timer_set(&l->timer, l->worker,
                 due <= now              ? 1
                 : due - now < INT32_MAX ? (uint32_t)(due - now)
                                         : INT32_MAX);
}

static void fail_late(struct pack_link *l, const char *reason)
{
    if (l->ops->on_late)
        l->ops->on_late(l);
    pack_link_fail(l, -ETIMEDOUT, reason);
}

/* Replies come in their order: if the first is late, all are, and the connection is of no use. */
static void on_due(struct mk_timer *t)
{
    struct pack_link *l = MK_CONTAINER(t, struct pack_link, timer);
    uint64_t now = mk_worker_now_ms(l->worker);
    struct pack_request *r;
    l->timer_ms = 0;
    if (pack_link_is_opening(l) && now - l->since_ms >= l->timeout_ms)
        fail_late(l, "it does not answer within Timeout");
    if (l->sent.first && l->sent.first->due_ms <= now)
        fail_late(l, "no reply within Timeout");
    while ((r = pack_requests_pop_due(&l->waiting, now)))
        l->ops->finish(l, r, -ETIMEDOUT, false);
    if (is_wanted(l))
        pack_link_open(l);
    pack_link_set_timer(l);
}

/* ---- Its end ---- */

static void finish_all(struct pack_link *l, struct pack_requests *all, int error)
{
    struct pack_request *r;
    bool is_sent = all == &l->sent;
    while ((r = pack_requests_pop(all)))
        l->ops->finish(l, r, error, is_sent);
}

/* Up to half of it less: of all the clients that a server lost in one moment, few come back in the same one. */
static uint32_t with_jitter(uint32_t ms)
{
    uint32_t number;
    mk_random(&number, sizeof number);
    return ms - number % (ms / 2 + 1);
}

/* A connection that is lost is replaced at once; attempts that fail are repeated less and less often. */
static void back_off(struct pack_link *l, bool was_up)
{
    uint64_t now = mk_worker_now_ms(l->worker);
    l->backoff_ms = was_up ? 0 : l->backoff_ms ? l->backoff_ms * 2 : BACKOFF_MIN_MS;
    if (l->backoff_ms > BACKOFF_MAX_MS)
        l->backoff_ms = BACKOFF_MAX_MS;
    l->retry_ms = now + with_jitter(l->backoff_ms);
    if (was_up || l->failing_ms)
        return;
    l->failing_ms = now;
    mk_worker_log(l->worker, MK_LOG_ERROR, "%s", l->why);
}

void pack_link_fail(struct pack_link *l, int error, const char *reason)
{
    bool was_up = pack_link_is_up(l);
    if (pack_link_is(l, PACK_LINK_DOWN)) /* something else was quicker */
        return;
    pack_link_explain(l, mk_str_from_c(reason));
    l->ops->close(l);
    pack_link_move(l, PACK_LINK_DOWN);
    back_off(l, was_up);
    finish_all(l, &l->sent, error);
    if (pack_link_is_away(l) || error == -ENOKEY /* permissions do not change while requests wait */ ||
        (l->fails_fast && !was_up))
        finish_all(l, &l->waiting, error);
    else if (l->waiting.first)
        mk_turn_end_set(l->turn);
    if (l->ops->on_down)
        l->ops->on_down(l, error);
    pack_link_set_timer(l);
}

void pack_link_fail_errno(struct pack_link *l, int e)
{
    pack_link_fail(l, pack_link_error(e), pack_link_error_text(e));
}

/* ---- Its way up ---- */

void pack_link_stay_up(struct pack_link *l)
{
    l->stays_up = true;
    if (pack_link_is(l, PACK_LINK_DOWN))
        mk_turn_end_set(l->turn);
}

void pack_link_open(struct pack_link *l)
{
    uint64_t now = mk_worker_now_ms(l->worker);
    if (pack_link_is(l, PACK_LINK_DOWN) && now >= l->retry_ms) {
        l->since_ms = now;
        l->ops->connect(l);
    }
    pack_link_set_timer(l);
}

void pack_link_up(struct pack_link *l)
{
    char room[PACK_LINK_WHY_MAX];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    pack_link_move(l, PACK_LINK_UP);
    if (l->failing_ms) {
        add_subject(l, &text);
        mk_worker_log(l->worker, MK_LOG_INFO, "%.*s is back", MK_STR_ARG(mk_buf_str(&text)));
    }
    l->failing_ms = 0;
    mk_turn_end_set(l->turn);
    if (l->ops->on_up)
        l->ops->on_up(l);
}

/* ---- Requests ---- */

static void on_turn_end(void *ctx)
{
    struct pack_link *l = ctx;
    if (is_wanted(l) && !pack_link_is(l, PACK_LINK_UP))
        pack_link_open(l); /* pack_link_up() sends what waits */
    else if (l->waiting.first)
        l->ops->send(l);
}

int pack_link_admit(const struct pack_link *l, size_t max)
{
    if (l->waiting.n + l->sent.n >= max)
        return -EBUSY;
    return pack_link_is_away(l) && mk_worker_now_ms(l->worker) < l->retry_ms ? -ECONNREFUSED : 0;
}

void pack_link_enqueue(struct pack_link *l, struct pack_request *r)
{
    pack_requests_push(&l->waiting, r);
    mk_turn_end_set(l->turn);
    pack_link_set_timer(l);
}

void pack_link_add_sent(struct pack_link *l, struct pack_request *r)
{
    pack_requests_push(&l->sent, r);
    pack_link_set_timer(l);
}

void pack_link_finish_first(struct pack_link *l, int error)
{
    l->ops->finish(l, pack_requests_pop(&l->sent), error, true);
}

/* ---- Its life ---- */

int pack_link_init(struct pack_link *l, struct mk_worker *w, const struct pack_link_ops *ops, mk_str name,
                   uint32_t timeout_ms)
{
    l->ops = ops;
    l->worker = w;
    l->name = name;
    l->timeout_ms = timeout_ms;
    mk_sm_init(&l->state, &machine, PACK_LINK_DOWN);
    l->turn = mk_turn_end_new(w, on_turn_end, l);
    mk_timer_init(&l->timer, on_due);
    return l->turn ? 0 : -ENOMEM;
}

void pack_link_fini(struct pack_link *l)
{
    if (!l->ops)
        return;
    l->ops->close(l);
    if (!pack_link_is(l, PACK_LINK_DOWN))
        pack_link_move(l, PACK_LINK_DOWN);
    finish_all(l, &l->sent, -ECANCELED);
    finish_all(l, &l->waiting, -ECANCELED);
    mk_turn_end_free(l->turn);
    mk_timer_stop(&l->timer);
    l->ops = NULL;
}
