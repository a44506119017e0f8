/* SPDX-License-Identifier: Apache-2.0 */
#include "connections.h"

#include <unistd.h>

#include "table_writer.h"

enum {
    PAGE = 16 * 1024,
    TARGET_MAX = 256, /* bytes of a target that are shown, before escaping */
    HOST_MAX = 64,
    METHOD_MAX = 16,
    TRY_MS = 300, /* timeout before the query is repeated */
    TRIES = 3,
    PATIENCE_MS = 3000, /* total wait for silent workers; after that, each worker is queried once */
};

static const struct cheetah_column columns[] = {
    {"process", 7}, {"peer", -21}, {"state", -6},  {"requests", 8},
    {"time", 9},    {"host", -16}, {"method", -6}, {"target", 0},
};

static struct cheetah_table_writer init_table_writer(struct mk_buf *out, bool json, bool has_rows)
{
    return (struct cheetah_table_writer){
        .out = out, .columns = columns, .n = MK_LEN(columns), .json = json, .has_rows = has_rows};
}

/* ---- One worker ---- */

struct page {
    struct cheetah_table_writer writer;
    int64_t process, first, at;
    bool is_full;
};

static void write_clipped_text(struct cheetah_table_writer *s, mk_str text, size_t max)
{
    char buf[TARGET_MAX + 3];
    struct mk_buf cut = mk_buf_fixed(buf, sizeof buf);
    if (!text.len) {
        cheetah_table_cell_null(s);
        return;
    }
    mk_buf_add(&cut, mk_str_first(text, max));
    if (text.len > max)
        mk_buf_add(&cut, MK_STR("..."));
    cheetah_table_cell_text(s, mk_buf_str(&cut));
}

static bool write_connection_row(const struct mk_conn_info *info, void *ctx)
{
    struct page *p = ctx;
    char buf[80];
    struct mk_buf peer = mk_buf_fixed(buf, sizeof buf);
    if (p->at++ < p->first)
        return true;
    if (p->writer.out->len >= PAGE) {
        p->is_full = true;
        return false;
    }
    mk_addr_format(&info->peer, &peer);
    if (!info->peer.is_unix)
        mk_buf_addf(&peer, " %u", info->peer.port);
    cheetah_table_cell_num(&p->writer, (uint64_t)p->process);
    cheetah_table_cell_text(&p->writer, mk_buf_str(&peer));
    cheetah_table_cell_text(&p->writer, mk_str_from_c(info->state));
    cheetah_table_cell_num(&p->writer, info->requests);
    if (info->method.p)
        cheetah_table_cell_ms(&p->writer, info->age_ms);
    else
        cheetah_table_cell_null(&p->writer);
    write_clipped_text(&p->writer, info->host, HOST_MAX);
    write_clipped_text(&p->writer, info->method, METHOD_MAX);
    write_clipped_text(&p->writer, info->target, TARGET_MAX);
    return true;
}

int64_t cheetah_connections_write_page(struct mk_worker *w, const struct cheetah_message *question,
                                       struct mk_buf *out)
{
    struct page p = {.writer = init_table_writer(out, question->json, question->has_rows),
                     .process = getpid(),
                     .first = question->cursor > 0 ? question->cursor : 0};
    mk_worker_each_conn(w, write_connection_row, &p);
    return p.is_full ? p.at - 1 : CHEETAH_CURSOR_END;
}

/* ---- All workers ---- */

struct listing {
    unsigned worker, tries, silent;
    uint32_t waited_ms;
    int64_t process, cursor; /* process of the queried worker; position of the page */
    bool json, has_rows, query_is_pending;
};

static void query_worker(struct cheetah_session *s, struct listing *a)
{
    struct shell *shell = cheetah_session_shell(s);
    struct cheetah_message note;
    memset(&note, 0, sizeof note);
    note.token = cheetah_session_token(s);
    note.question = CHEETAH_MESSAGE_CONNECTIONS;
    note.from = mk_worker_index(shell->worker);
    note.json = a->json;
    note.has_rows = a->has_rows;
    note.cursor = a->cursor;
    a->query_is_pending = true;
    (void)cheetah_message_send(shell, a->worker, &note, MK_STR_NULL);
    cheetah_session_set_timer(s, TRY_MS);
}

/* Returns the number of connections of draining processes, which have an older configuration and do not get
 * messages of this one. */
static uint64_t count_draining_conns(const struct mk_worker *w)
{
    struct mk_worker_stats stats;
    uint64_t n = 0;
    for (size_t i = 0; mk_worker_stats_at(w, i, &stats); i++)
        n += stats.pid && stats.draining ? stats.open : 0;
    return n;
}

static void finish_listing(struct cheetah_session *s, const struct listing *a)
{
    char buf[8];
    struct mk_buf end = mk_buf_fixed(buf, sizeof buf);
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    struct cheetah_table_writer writer = init_table_writer(&end, a->json, a->has_rows);
    cheetah_table_writer_end(&writer);
    cheetah_session_write_output(s, mk_buf_str(&end));
    uint64_t unseen = count_draining_conns(w);
    if (unseen)
        cheetah_session_write_note(s, "%llu more in draining processes, not shown",
                                   (unsigned long long)unseen);
    if (a->silent)
        cheetah_session_finish_response(s, CHEETAH_FAILED,
                                        "%u of %u workers did not answer: their connections are missing",
                                        a->silent, mk_worker_count(w));
    else
        cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
}

static void query_worker_or_finish(struct cheetah_session *s)
{
    struct listing *a = cheetah_session_state(s);
    if (a->query_is_pending)
        return;
    if (a->worker < mk_worker_count(cheetah_session_shell(s)->worker))
        query_worker(s, a);
    else
        finish_listing(s, a);
}

static void advance_to_next_worker(struct listing *a)
{
    a->worker++;
    a->process = a->cursor = 0;
    a->tries = 0;
    a->query_is_pending = false;
}

static void retry_or_skip_worker(struct cheetah_session *s)
{
    struct listing *a = cheetah_session_state(s);
    if (!a->query_is_pending) /* no query is pending: the session waits for its slow client */
        return;
    a->waited_ms += TRY_MS;
    if (++a->tries < TRIES && a->waited_ms < PATIENCE_MS) {
        query_worker(s, a);
        return;
    }
    cheetah_session_write_note(s, "worker %u does not answer", a->worker);
    a->silent++;
    advance_to_next_worker(a);
}

static void on_worker_page(struct cheetah_session *s, const struct cheetah_message *note, mk_str text)
{
    struct listing *a = cheetah_session_state(s);
    bool is_expected = a->query_is_pending && note->question == CHEETAH_MESSAGE_CONNECTIONS &&
                       note->from == a->worker && note->cursor == a->cursor &&
                       (note->next == CHEETAH_CURSOR_END || note->next > note->cursor);
    /* Ignores duplicate responses, and responses of the successor of a worker that died. */
    if (!is_expected || (a->process && a->process != note->facts.process))
        return;
    cheetah_session_write_output(s, text);
    a->has_rows |= text.len > 0;
    a->process = note->facts.process;
    a->cursor = note->next;
    a->query_is_pending = false;
    a->tries = 0;
    if (a->cursor == CHEETAH_CURSOR_END)
        advance_to_next_worker(a);
}

static const struct cheetah_deferred_command job = {
    .on_timer = retry_or_skip_worker, .on_output_sent = query_worker_or_finish, .on_message = on_worker_page};

void cheetah_connections_command(struct cheetah_session *s, mk_str args, bool json)
{
    struct mk_buf head = mk_buf_growing(1024);
    struct cheetah_table_writer writer = init_table_writer(&head, json, false);
    struct listing *a = cheetah_session_defer_response(s, &job, sizeof *a);
    (void)args;
    if (!a)
        return;
    a->json = json;
    cheetah_table_writer_begin(&writer);
    cheetah_session_write_output(s, mk_buf_str(&head));
    mk_buf_free(&head);
}
