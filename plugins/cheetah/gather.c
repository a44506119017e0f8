/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

enum { TRY_MS = 300, TRIES = 4 };

static bool has_answered(const struct shell_gathering *g, unsigned worker)
{
    const struct shell_facts *f = &g->facts[worker];
    return f->process && (!g->wants_level || f->level == g->level);
}

static bool is_complete(const struct shell_gathering *g)
{
    unsigned n = 0;
    while (n < g->n && has_answered(g, n))
        n++;
    return n == g->n;
}

static void ask(struct shell_session *s, struct shell_gathering *g)
{
    struct shell *shell = shell_session_shell(s);
    struct shell_note note;
    memset(&note, 0, sizeof note);
    note.token = shell_session_token(s);
    note.question = g->question;
    note.from = mk_worker_index(shell->worker);
    (void)shell_note_send(shell, MK_TO_ALL, &note, (mk_str){NULL, 0});
    shell_session_set_time(s, TRY_MS);
}

static void on_time(struct shell_session *s)
{
    struct shell_gathering *g = shell_session_state(s);
    if (++g->tries < TRIES)
        ask(s, g);
    else
        g->finish(s, g);
}

static void on_note(struct shell_session *s, const struct shell_note *note, mk_str text)
{
    struct shell_gathering *g = shell_session_state(s);
    (void)text;
    if (note->question != g->question || note->from >= g->n)
        return;
    g->facts[note->from] = note->facts;
    if (is_complete(g))
        g->finish(s, g);
}

static const struct shell_job job = {.on_time = on_time, .on_note = on_note};

struct shell_gathering *shell_gather(struct shell_session *s, enum shell_question question, bool json,
                                     void (*finish)(struct shell_session *s, const struct shell_gathering *g))
{
    unsigned n = mk_worker_count(shell_session_shell(s)->worker);
    struct shell_gathering *g = shell_session_wait(s, &job, sizeof *g + n * sizeof *g->facts);
    if (!g)
        return NULL;
    g->finish = finish;
    g->question = question;
    g->json = json;
    g->n = n;
    ask(s, g);
    return g;
}

unsigned shell_gather_missing(struct shell_session *s, const struct shell_gathering *g)
{
    unsigned n = 0;
    for (unsigned i = 0; i < g->n; i++) {
        if (has_answered(g, i))
            continue;
        shell_session_remark(s, "worker %u does not answer", i);
        n++;
    }
    return n;
}

const struct shell_facts *shell_gather_find(const struct shell_gathering *g, int64_t process)
{
    for (unsigned i = 0; i < g->n; i++)
        if (g->facts[i].process == process)
            return &g->facts[i];
    return NULL;
}
