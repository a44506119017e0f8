/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client_state.h"

#include "upstream/link_type.h"

const uint8_t mk_client_state_moves[MK_CLIENT_STATES] = {
    [MK_CLIENT_WAITING] = 1u << MK_CLIENT_OPEN | 1u << MK_CLIENT_FAILED,
    /* Back: the request is sent once more, over another connection. */
    [MK_CLIENT_OPEN] =
        1u << MK_CLIENT_WAITING | 1u << MK_CLIENT_CONTENT | 1u << MK_CLIENT_UPGRADED | 1u << MK_CLIENT_FAILED,
    [MK_CLIENT_CONTENT] = 1u << MK_CLIENT_DONE | 1u << MK_CLIENT_FAILED,
    [MK_CLIENT_UPGRADED] = 1u << MK_CLIENT_FAILED,
    [MK_CLIENT_DONE] = 0,
    [MK_CLIENT_FAILED] = 0,
};

const uint8_t mk_client_state_output_moves[MK_CLIENT_OUTPUT_STATES] = {
    [MK_CLIENT_OUTPUT_NONE] =
        1u << MK_CLIENT_OUTPUT_HELD | 1u << MK_CLIENT_OUTPUT_SENDING | 1u << MK_CLIENT_OUTPUT_ENDING,
    [MK_CLIENT_OUTPUT_HELD] =
        1u << MK_CLIENT_OUTPUT_SENDING | 1u << MK_CLIENT_OUTPUT_BROKEN | 1u << MK_CLIENT_OUTPUT_NONE,
    [MK_CLIENT_OUTPUT_SENDING] =
        1u << MK_CLIENT_OUTPUT_ENDING | 1u << MK_CLIENT_OUTPUT_BROKEN | 1u << MK_CLIENT_OUTPUT_NONE,
    [MK_CLIENT_OUTPUT_ENDING] =
        1u << MK_CLIENT_OUTPUT_SENT | 1u << MK_CLIENT_OUTPUT_BROKEN | 1u << MK_CLIENT_OUTPUT_NONE,
    /* Back: the protocol changed, and there is more to send. */
    [MK_CLIENT_OUTPUT_SENT] = 1u << MK_CLIENT_OUTPUT_SENDING | 1u << MK_CLIENT_OUTPUT_NONE,
    [MK_CLIENT_OUTPUT_BROKEN] = 1u << MK_CLIENT_OUTPUT_NONE,
};

void mk_client_state_release(struct mk_client *c, enum mk_link_end how)
{
    if (!c->link)
        return;
    c->server_name = mk_link_server_name(c->link);
    c->server = mk_link_server(c->link);
    mk_link_give(c->link, how);
    c->link = NULL;
    c->awaits = MK_CLIENT_AWAITS_NOTHING;
    if (c->output != MK_CLIENT_OUTPUT_NONE)
        mk_client_state_move_output(c, MK_CLIENT_OUTPUT_NONE);
}

/* A stream of events does not end by itself: a spool would only fill up. The length of its name rules most fields out. */
bool mk_client_state_is_event_stream(const struct mk_client *c)
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

/* Can it still be at work on the request? */
static bool is_at_work(const struct mk_client *c)
{
    return mk_client_state_is_connected(c) && (c->sent > 0 || c->state == MK_CLIENT_UPGRADED) &&
           !c->has_ended;
}

void mk_client_state_abandon(struct mk_client *c, enum mk_link_end how)
{
    if (c->link && is_at_work(c)) {
        bool has_head = c->state == MK_CLIENT_CONTENT;
        bool streams = has_head ? mk_client_state_is_event_stream(c) : c->state == MK_CLIENT_UPGRADED;
        mk_link_abandon(c->link, c->limits.response_ms, streams);
    }
    mk_client_state_release(c, how);
}

void mk_client_state_fail(struct mk_client *c, int error, const char *problem, enum mk_link_end how)
{
    mk_client_state_abandon(c, how);
    mk_client_state_move(c, MK_CLIENT_FAILED);
    c->error = error;
    c->problem = problem;
}

void mk_client_state_break(struct mk_client *c, int error, const char *problem)
{
    mk_client_state_move_output(c, MK_CLIENT_OUTPUT_BROKEN);
    c->can_read = true; /* a response may be there before the event that tells of it */
    c->error = error;
    c->problem = problem;
}
