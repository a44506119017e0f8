/* SPDX-License-Identifier: Apache-2.0 */
#include "message_handler.h"

#include "connections.h"

enum { MESSAGE_MAX = 32 * 1024 };

static void respond_to_query(struct shell *s, const struct cheetah_message *question)
{
    struct cheetah_message note;
    struct mk_buf text = mk_buf_growing(MESSAGE_MAX);
    memcpy(&note, question, sizeof note);
    note.is_response = true;
    note.from = mk_worker_index(s->worker);
    if (note.question == CHEETAH_MESSAGE_CLEAR_CACHE)
        mk_worker_cache_clear(s->worker);
    if (note.question == CHEETAH_MESSAGE_CONNECTIONS)
        note.next = cheetah_connections_write_page(s->worker, question, &text);
    cheetah_worker_facts_collect(s, &note.facts);
    /* If the response is lost, the query is repeated. */
    (void)cheetah_message_send(s, question->from, &note, mk_buf_str(&text));
    mk_buf_free(&text);
}

void cheetah_on_message(struct mk_worker *worker, mk_str message, void *data)
{
    const struct cheetah *c = data;
    struct shell *s = mk_worker_data(worker, c->plugin);
    struct cheetah_message note;
    if (!s || message.len < sizeof note)
        return;
    memcpy(&note, message.p, sizeof note);
    if (note.is_response)
        cheetah_session_on_message(s, &note, mk_str_skip(message, sizeof note));
    else if (!cheetah_is_worker_superseded(
                 worker)) /* in a draining worker, the query was meant for its successor */
        respond_to_query(s, &note);
}
