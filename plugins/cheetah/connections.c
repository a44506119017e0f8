/* SPDX-License-Identifier: Apache-2.0 */
#include "connections.h"

#include <unistd.h>

#include "sheet.h"

enum {
    PAGE = 16 * 1024,
    TARGET_MAX = 256, /* of a client, before escaping */
    HOST_MAX = 64,
    METHOD_MAX = 16,
    TRY_MS = 300, /* time to answer, before the question is repeated */
    TRIES = 3,
    PATIENCE_MS = 3000, /* for all workers that do not answer; after that, each gets one question */
};

static const struct cheetah_column columns[] = {
    {"process", 7}, {"peer", -21}, {"state", -6},  {"requests", 8},
    {"time", 9},    {"host", -16}, {"method", -6}, {"target", 0},
};

static struct cheetah_sheet sheet_of(struct mk_buf *out, bool json, bool has_rows)
{
    return (struct cheetah_sheet){
        .out = out, .columns = columns, .n = MK_LEN(columns), .json = json, .has_rows = has_rows};
}

/* ---- Of one worker ---- */

struct page {
    struct cheetah_sheet sheet;
    int64_t process, first, at;
    bool is_full;
};

static void write_text(struct cheetah_sheet *s, mk_str text, size_t max)
{
    char room[TARGET_MAX + 3];
    struct mk_buf cut = mk_buf_fixed(room, sizeof room);
    if (!text.len) {
        cheetah_cell_none(s);
        return;
    }
    mk_buf_add(&cut, mk_str_first(text, max));
    if (text.len > max)
        mk_buf_add(&cut, MK_STR("..."));
    cheetah_cell_text(s, mk_buf_str(&cut));
}

static bool write_row(const struct mk_conn_info *info, void *ctx)
{
    struct page *p = ctx;
    char room[80];
    struct mk_buf peer = mk_buf_fixed(room, sizeof room);
    if (p->at++ < p->first)
        return true;
    if (p->sheet.out->len >= PAGE) {
        p->is_full = true;
        return false;
    }
    mk_addr_format(&info->peer, &peer);
    if (!info->peer.is_unix)
        mk_buf_addf(&peer, " %u", info->peer.port);
    cheetah_cell_num(&p->sheet, (uint64_t)p->process);
    cheetah_cell_text(&p->sheet, mk_buf_str(&peer));
    cheetah_cell_text(&p->sheet, mk_str_from_c(info->state));
    cheetah_cell_num(&p->sheet, info->requests);
    if (info->method.p)
        cheetah_cell_ms(&p->sheet, info->age_ms);
    else
        cheetah_cell_none(&p->sheet);
    write_text(&p->sheet, info->host, HOST_MAX);
    write_text(&p->sheet, info->method, METHOD_MAX);
    write_text(&p->sheet, info->target, TARGET_MAX);
    return true;
}

int64_t cheetah_connections_write(struct mk_worker *w, const struct cheetah_note *question,
                                  struct mk_buf *out)
{
    struct page p = {.sheet = sheet_of(out, question->json, question->has_rows),
                     .process = getpid(),
                     .first = question->cursor > 0 ? question->cursor : 0};
    mk_worker_each_conn(w, write_row, &p);
    return p.is_full ? p.at - 1 : CHEETAH_CURSOR_END;
}

/* ---- Of all workers ---- */

struct asking {
    unsigned worker, tries, silent;
    uint32_t waited_ms;
    int64_t process, cursor; /* of the worker with the pending question */
    bool json, has_rows, has_asked;
};

static void ask(struct cheetah_session *s, struct asking *a)
{
    struct shell *shell = cheetah_session_shell(s);
    struct cheetah_note note;
    memset(&note, 0, sizeof note);
    note.token = cheetah_session_token(s);
    note.question = CHEETAH_ASK_CONNECTIONS;
    note.from = mk_worker_index(shell->worker);
    note.json = a->json;
    note.has_rows = a->has_rows;
    note.cursor = a->cursor;
    a->has_asked = true;
    (void)cheetah_note_send(shell, (int)a->worker, &note, MK_STR_NULL);
    cheetah_session_set_time(s, TRY_MS);
}

/* Leaving processes have an older configuration and get no messages of this one. */
static uint64_t count_unseen(const struct mk_worker *w)
{
    struct mk_worker_stats stats;
    uint64_t n = 0;
    for (size_t i = 0; mk_worker_stats_at(w, i, &stats); i++)
        n += stats.pid && stats.leaving ? stats.open : 0;
    return n;
}

static void finish(struct cheetah_session *s, const struct asking *a)
{
    char room[8];
    struct mk_buf end = mk_buf_fixed(room, sizeof room);
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    struct cheetah_sheet sheet = sheet_of(&end, a->json, a->has_rows);
    cheetah_sheet_end(&sheet);
    cheetah_session_say(s, mk_buf_str(&end));
    uint64_t unseen = count_unseen(w);
    if (unseen)
        cheetah_session_remark(s, "%llu more of leaving processes, which are not shown",
                               (unsigned long long)unseen);
    if (a->silent)
        cheetah_session_answer(s, CHEETAH_FAILED,
                               "%u of %u workers did not answer: their connections are missing", a->silent,
                               mk_worker_count(w));
    else
        cheetah_session_answer(s, CHEETAH_DONE, "%s", "");
}

static void go_on(struct cheetah_session *s)
{
    struct asking *a = cheetah_session_state(s);
    if (a->has_asked)
        return;
    if (a->worker < mk_worker_count(cheetah_session_shell(s)->worker))
        ask(s, a);
    else
        finish(s, a);
}

static void next_worker(struct asking *a)
{
    a->worker++;
    a->process = a->cursor = 0;
    a->tries = 0;
    a->has_asked = false;
}

static void on_time(struct cheetah_session *s)
{
    struct asking *a = cheetah_session_state(s);
    if (!a->has_asked) /* the client is slow */
        return;
    a->waited_ms += TRY_MS;
    if (++a->tries < TRIES && a->waited_ms < PATIENCE_MS) {
        ask(s, a);
        return;
    }
    cheetah_session_remark(s, "worker %u does not answer", a->worker);
    a->silent++;
    next_worker(a);
}

static void on_note(struct cheetah_session *s, const struct cheetah_note *note, mk_str text)
{
    struct asking *a = cheetah_session_state(s);
    bool is_expected = a->has_asked && note->question == CHEETAH_ASK_CONNECTIONS && note->from == a->worker &&
                       note->cursor == a->cursor &&
                       (note->next == CHEETAH_CURSOR_END || note->next > note->cursor);
    /* Ignores second answers to a question, and answers of the successor of a worker that died. */
    if (!is_expected || (a->process && a->process != note->facts.process))
        return;
    cheetah_session_say(s, text);
    a->has_rows |= text.len > 0;
    a->process = note->facts.process;
    a->cursor = note->next;
    a->has_asked = false;
    a->tries = 0;
    if (a->cursor == CHEETAH_CURSOR_END)
        next_worker(a);
}

static const struct cheetah_job job = {.on_time = on_time, .on_room = go_on, .on_note = on_note};

void cheetah_connections(struct cheetah_session *s, mk_str args, bool json)
{
    struct mk_buf head = mk_buf_growing(1024);
    struct cheetah_sheet sheet = sheet_of(&head, json, false);
    struct asking *a = cheetah_session_wait(s, &job, sizeof *a);
    (void)args;
    if (!a)
        return;
    a->json = json;
    cheetah_sheet_begin(&sheet);
    cheetah_session_say(s, mk_buf_str(&head));
    mk_buf_free(&head);
}
