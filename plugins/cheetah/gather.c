/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

enum { TRY_MS = 300, TRIES = 4 };

static bool has_answered(const struct cheetah_gathering *g, unsigned worker)
{
    const struct cheetah_facts *f = &g->facts[worker];
    return f->process && (!g->wants_level || f->level == g->level);
}

static bool is_complete(const struct cheetah_gathering *g)
{
    unsigned n = 0;
    while (n < g->n && has_answered(g, n))
        n++;
    return n == g->n;
}

static void ask(struct cheetah_session *s, struct cheetah_gathering *g)
{
    struct shell *shell = cheetah_session_shell(s);
    struct cheetah_note note;
    memset(&note, 0, sizeof note);
    note.token = cheetah_session_token(s);
    note.question = g->question;
    note.from = mk_worker_index(shell->worker);
    (void)cheetah_note_send(shell, MK_TO_ALL, &note, MK_STR_NULL);
    cheetah_session_set_time(s, TRY_MS);
}

static void on_time(struct cheetah_session *s)
{
    struct cheetah_gathering *g = cheetah_session_state(s);
    if (++g->tries < TRIES)
        ask(s, g);
    else
        g->finish(s, g);
}

static void on_note(struct cheetah_session *s, const struct cheetah_note *note, mk_str text)
{
    struct cheetah_gathering *g = cheetah_session_state(s);
    (void)text;
    if (note->question != g->question || note->from >= g->n)
        return;
    g->facts[note->from] = note->facts;
    if (is_complete(g))
        g->finish(s, g);
}

static const struct cheetah_job job = {.on_time = on_time, .on_note = on_note};

struct cheetah_gathering *cheetah_gather(struct cheetah_session *s, enum cheetah_question question, bool json,
                                         void (*finish)(struct cheetah_session *s,
                                                        const struct cheetah_gathering *g))
{
    unsigned n = mk_worker_count(cheetah_session_shell(s)->worker);
    struct cheetah_gathering *g = cheetah_session_wait(s, &job, sizeof *g + n * sizeof *g->facts);
    if (!g)
        return NULL;
    g->finish = finish;
    g->question = question;
    g->json = json;
    g->n = n;
    ask(s, g);
    return g;
}

unsigned cheetah_gather_missing(struct cheetah_session *s, const struct cheetah_gathering *g)
{
    unsigned n = 0;
    for (unsigned i = 0; i < g->n; i++) {
        if (has_answered(g, i))
            continue;
        cheetah_session_remark(s, "worker %u does not answer", i);
        n++;
    }
    return n;
}

const struct cheetah_facts *cheetah_gather_find(const struct cheetah_gathering *g, int64_t process)
{
    for (unsigned i = 0; i < g->n; i++)
        if (g->facts[i].process == process)
            return &g->facts[i];
    return NULL;
}
