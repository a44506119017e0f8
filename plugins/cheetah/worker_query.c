/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_query.h"

enum { TRY_MS = 300, TRIES = 4 };

static bool has_responded(const struct cheetah_worker_query *g, unsigned worker)
{
    const struct cheetah_worker_facts *f = &g->facts[worker];
    return f->process && (!g->wants_level || f->level == g->level);
}

static bool have_all_responded(const struct cheetah_worker_query *g)
{
    unsigned n = 0;
    while (n < g->n && has_responded(g, n))
        n++;
    return n == g->n;
}

static void send_query(struct cheetah_session *s, struct cheetah_worker_query *g)
{
    struct shell *shell = cheetah_session_shell(s);
    struct cheetah_message note;
    memset(&note, 0, sizeof note);
    note.token = cheetah_session_token(s);
    note.question = g->question;
    note.from = mk_worker_index(shell->worker);
    (void)cheetah_message_send(shell, MK_TO_ALL, &note, MK_STR_NULL);
    cheetah_session_set_timer(s, TRY_MS);
}

static void retry_query(struct cheetah_session *s)
{
    struct cheetah_worker_query *g = cheetah_session_state(s);
    if (++g->tries < TRIES)
        send_query(s, g);
    else
        g->finish(s, g);
}

static void store_worker_facts(struct cheetah_session *s, const struct cheetah_message *note, mk_str text)
{
    struct cheetah_worker_query *g = cheetah_session_state(s);
    (void)text;
    if (note->question != g->question || note->from >= g->n)
        return;
    g->facts[note->from] = note->facts;
    if (have_all_responded(g))
        g->finish(s, g);
}

static const struct cheetah_deferred_command job = {.on_timer = retry_query,
                                                    .on_message = store_worker_facts};

struct cheetah_worker_query *
cheetah_worker_query_start(struct cheetah_session *s, enum cheetah_message_type question, bool json,
                           void (*finish)(struct cheetah_session *s, const struct cheetah_worker_query *g))
{
    unsigned n = mk_worker_count(cheetah_session_shell(s)->worker);
    struct cheetah_worker_query *g =
        cheetah_session_defer_response(s, &job, sizeof *g + n * sizeof *g->facts);
    if (!g)
        return NULL;
    g->finish = finish;
    g->question = question;
    g->json = json;
    g->n = n;
    send_query(s, g);
    return g;
}

unsigned cheetah_worker_query_n_missing(struct cheetah_session *s, const struct cheetah_worker_query *g)
{
    unsigned n = 0;
    for (unsigned i = 0; i < g->n; i++) {
        if (has_responded(g, i))
            continue;
        cheetah_session_write_note(s, "worker %u does not answer", i);
        n++;
    }
    return n;
}

const struct cheetah_worker_facts *cheetah_worker_query_find(const struct cheetah_worker_query *g,
                                                             int64_t process)
{
    for (unsigned i = 0; i < g->n; i++)
        if (g->facts[i].process == process)
            return &g->facts[i];
    return NULL;
}
