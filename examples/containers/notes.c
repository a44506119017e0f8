/* SPDX-License-Identifier: Apache-2.0 */
/* A service for several nodes: PostgreSQL stores the notes, Redis counts the writes of each client to limit
 * their rate, and each new note goes to the event streams of all nodes. */
#define DUDA_USE "duda-sql", "duda-store"
#include <duda.h>
#include <duda/sql.h>
#include <duda/store.h>
#include <duda/topic.h>
#include <errno.h>

enum { NOTE_MAX = 1000, PER_MINUTE = 100, MINUTE_MS = 60000, PING_MS = 15000 };

static int list(struct duda_ctx *d)
{
    struct duda_sql_result result;
    int e = duda_sql_query(d, duda_sql_find(d, NULL), &result,
                           "SELECT id, note FROM notes ORDER BY id DESC LIMIT 20");
    return e ? e : duda_send_json(d, duda_sql_rows_value(d, &result));
}

DUDA_TOPIC(notes_topic, "notes");

static int add(struct duda_ctx *d)
{
    mk_str note;
    int e = duda_read_all(d, NOTE_MAX, &note);
    if (!e)
        e = duda_store_rate_limit(d, duda_store_find(d, NULL), duda_client_ip(d), PER_MINUTE, MINUTE_MS);
    if (e)
        return e == -EDQUOT ? 429 : e;
    e = duda_sql_query(d, duda_sql_find(d, NULL), NULL, "INSERT INTO notes (note) VALUES ($1)",
                       duda_sql_text(note));
    if (!e)
        e = duda_topic_publish(d, &notes_topic, note);
    return e && e != -EAGAIN ? e : 201;
}

static int events(struct duda_ctx *d)
{
    int e = duda_topic_subscribe(d, &notes_topic);
    mk_str note = MK_STR(""); /* sends an SSE comment first, so that the client sees the connection */
    size_t mark = duda_arena_mark(d);
    while (!e) {
        e = duda_sse_send(d, note.len ? &(struct mk_sse_event){.name = MK_STR("note"), .data = note} : NULL);
        duda_arena_rewind(d, mark);
        e = e ? e : duda_topic_receive(d, PING_MS, &note);
        e = e == -ETIME ? 0 : e;
    }
    return e;
}

DUDA_SERVICE(notes, DUDA_GET("/notes", list, "The last notes."), DUDA_POST("/notes", add, "Adds a note."),
             DUDA_GET("/events", events, "New notes of all nodes, as an event stream."));
