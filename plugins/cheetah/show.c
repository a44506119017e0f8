/* SPDX-License-Identifier: Apache-2.0 */
#include "show.h"

#include <monkey/tls.h>
#include <monkey/version.h>
#include <time.h>

#include "gather.h"
#include "levels.h"
#include "sheet.h"

enum { TEXT_MAX = 4 << 20 };

/* Says the text, or that there is none, and ends the answer. */
static void tell(struct shell_session *s, struct mk_buf *text)
{
    if (text->failed)
        shell_session_answer(s, SHELL_FAILED, "the answer is longer than %d MB, or there is no memory for it",
                             TEXT_MAX >> 20);
    else
        shell_session_say(s, mk_buf_str(text));
    if (!text->failed)
        shell_session_answer(s, SHELL_DONE, "%s", "");
    mk_buf_free(text);
}

static uint64_t uptime_of(const struct mk_worker *w)
{
    int64_t passed = mk_worker_now(w) - mk_worker_server_started(w);
    return passed > 0 ? (uint64_t)passed : 0;
}

/* ---- The server ---- */

static const struct shell_column status_columns[] = {
    {"version", 0},       {"process", 0},        {"started", 0},       {"uptime", 0},
    {"workers", 0},       {"leaving", 0},        {"connections", 0},   {"accepted", 0},
    {"dropped", 0},       {"requests", 0},       {"responses_1xx", 0}, {"responses_2xx", 0},
    {"responses_3xx", 0}, {"responses_4xx", 0},  {"responses_5xx", 0}, {"sent", 0},
    {"reloads", 0},       {"failed_reloads", 0}, {"log_level", 0},     {"sessions", 0},
};

struct totals {
    uint64_t workers, leaving, open;
    struct mk_worker_stats all;
};

static void add(struct mk_worker_stats *sum, const struct mk_worker_stats *n)
{
    sum->accepted += n->accepted;
    sum->dropped += n->dropped;
    sum->requests += n->requests;
    sum->sent += n->sent;
    for (size_t i = 0; i < sizeof sum->by_class / sizeof *sum->by_class; i++)
        sum->by_class[i] += n->by_class[i];
}

static struct totals totals_of(const struct mk_worker *w)
{
    struct totals t = {0};
    struct mk_worker_stats stats;
    mk_worker_stats_past(w, &t.all);
    for (size_t i = 0; mk_worker_stats_at(w, i, &stats); i++) {
        add(&t.all, &stats);
        if (!stats.pid)
            continue;
        *(stats.leaving ? &t.leaving : &t.workers) += 1;
        t.open += stats.open;
    }
    return t;
}

static void write_counts(struct shell_sheet *sheet, const struct totals *t)
{
    shell_cell_num(sheet, t->workers);
    shell_cell_num(sheet, t->leaving);
    shell_cell_num(sheet, t->open);
    shell_cell_num(sheet, t->all.accepted);
    shell_cell_num(sheet, t->all.dropped);
    shell_cell_num(sheet, t->all.requests);
    for (size_t i = 1; i < sizeof t->all.by_class / sizeof *t->all.by_class; i++)
        shell_cell_num(sheet, t->all.by_class[i]);
    shell_cell_bytes(sheet, t->all.sent);
}

void shell_show_status(struct shell_session *s, mk_str args, bool json)
{
    const struct shell *shell = shell_session_shell(s);
    const struct mk_worker *w = shell->worker;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct shell_sheet sheet = {.out = &text,
                                .columns = status_columns,
                                .n = sizeof status_columns / sizeof status_columns[0],
                                .form = SHELL_LIST,
                                .json = json};
    struct totals t = totals_of(w);
    struct mk_reloads reloads;
    mk_worker_reloads(w, &reloads, NULL);
    (void)args;
    shell_sheet_begin(&sheet);
    shell_cell_text(&sheet, MK_STR(MONKEY_VERSION));
    shell_cell_num(&sheet, (uint64_t)mk_worker_master(w));
    shell_cell_time(&sheet, mk_worker_server_started(w));
    shell_cell_seconds(&sheet, uptime_of(w));
    write_counts(&sheet, &t);
    shell_cell_num(&sheet, reloads.done);
    shell_cell_num(&sheet, reloads.failed);
    shell_cell_text(&sheet, mk_str_from_c(shell_level_names[mk_worker_log_level(w)]));
    shell_cell_num(&sheet, shell_seats_count(shell->cheetah->seats, w));
    shell_sheet_end(&sheet);
    tell(s, &text);
}

void shell_show_version(struct shell_session *s, mk_str args, bool json)
{
    (void)args, (void)json;
    shell_session_say(s, MK_STR("Monkey " MONKEY_VERSION));
    shell_session_answer(s, SHELL_DONE, "%s", "");
}

void shell_show_uptime(struct shell_session *s, mk_str args, bool json)
{
    char room[64];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    (void)args, (void)json;
    shell_add_span(&text, uptime_of(shell_session_shell(s)->worker));
    shell_session_say(s, mk_buf_str(&text));
    shell_session_answer(s, SHELL_DONE, "%s", "");
}

/* ---- Workers ---- */

static const struct shell_column worker_columns[] = {
    {"process", 7},   {"started", -19}, {"connections", 11}, {"accepted", 10},
    {"requests", 10}, {"sent", 8},      {"memory", 8},       {"leaving", 0},
};

static void write_worker(struct shell_sheet *sheet, const struct mk_worker_stats *stats,
                         const struct shell_facts *facts)
{
    shell_cell_num(sheet, (uint64_t)stats->pid);
    shell_cell_time(sheet, (int64_t)stats->started);
    shell_cell_num(sheet, stats->open);
    shell_cell_num(sheet, stats->accepted);
    shell_cell_num(sheet, stats->requests);
    shell_cell_bytes(sheet, stats->sent);
    if (facts && facts->memory)
        shell_cell_bytes(sheet, facts->memory);
    else
        shell_cell_none(sheet);
    shell_cell_bool(sheet, stats->leaving);
}

static void finish_workers(struct shell_session *s, const struct shell_gathering *g)
{
    const struct mk_worker *w = shell_session_shell(s)->worker;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct shell_sheet sheet = {.out = &text,
                                .columns = worker_columns,
                                .n = sizeof worker_columns / sizeof worker_columns[0],
                                .json = g->json};
    struct mk_worker_stats stats;
    shell_sheet_begin(&sheet);
    for (size_t i = 0; mk_worker_stats_at(w, i, &stats); i++)
        if (stats.pid)
            write_worker(&sheet, &stats, shell_gather_find(g, stats.pid));
    shell_sheet_end(&sheet);
    (void)shell_gather_missing(s, g);
    tell(s, &text);
}

void shell_show_workers(struct shell_session *s, mk_str args, bool json)
{
    (void)args;
    (void)shell_gather(s, SHELL_ASK_FACTS, json, finish_workers);
}

/* ---- The cache ---- */

static const struct shell_column cache_columns[] = {
    {"process", 7}, {"files", 8}, {"files_max", 9}, {"memory", 8}, {"memory_max", 10},
};

static void finish_cache(struct shell_session *s, const struct shell_gathering *g)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct shell_sheet sheet = {.out = &text,
                                .columns = cache_columns,
                                .n = sizeof cache_columns / sizeof cache_columns[0],
                                .json = g->json};
    shell_sheet_begin(&sheet);
    for (unsigned i = 0; i < g->n; i++) {
        const struct shell_facts *f = &g->facts[i];
        if (!f->process)
            continue;
        shell_cell_num(&sheet, (uint64_t)f->process);
        shell_cell_num(&sheet, f->cache.files);
        shell_cell_num(&sheet, f->cache.files_max);
        shell_cell_bytes(&sheet, f->cache.memory);
        shell_cell_bytes(&sheet, f->cache.memory_max);
    }
    shell_sheet_end(&sheet);
    shell_session_say(s, mk_buf_str(&text));
    mk_buf_free(&text);
    unsigned missing = shell_gather_missing(s, g);
    if (missing)
        shell_session_answer(s, SHELL_FAILED, "%u of %u workers did not answer", missing, g->n);
    else
        shell_session_answer(s, SHELL_DONE, "%s", "");
}

static void finish_clear(struct shell_session *s, const struct shell_gathering *g)
{
    unsigned missing = shell_gather_missing(s, g);
    if (missing)
        shell_session_answer(s, SHELL_FAILED, "%u of %u workers did not answer: theirs may be as it was",
                             missing, g->n);
    else
        shell_session_answer(s, SHELL_DONE, "cleared in %u worker%s", g->n, g->n == 1 ? "" : "s");
}

void shell_show_cache(struct shell_session *s, mk_str args, bool json)
{
    mk_str word = mk_str_word(&args);
    if (!word.len) {
        (void)shell_gather(s, SHELL_ASK_FACTS, json, finish_cache);
    } else if (mk_str_eq_nocase(word, MK_STR("clear")) && !mk_str_word(&args).len && !json) {
        shell_session_log(s, "clears the cache");
        (void)shell_gather(s, SHELL_ASK_CLEAR, false, finish_clear);
    } else {
        shell_session_answer(s, SHELL_MISUSED, "expected `cache` or `cache clear`");
    }
}

/* ---- The configuration ---- */

static void write_certificate(struct mk_buf *text, int64_t ends)
{
    char date[32];
    time_t t = (time_t)ends;
    struct tm tm;
    if (ends && gmtime_r(&t, &tm) && strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &tm))
        mk_buf_addf(text, "\n    certificate until %s", date);
}

static void write_host(struct mk_buf *text, const struct mk_host *h)
{
    mk_str pattern, handler, name = mk_host_name_at(h, 0);
    if (!name.p)
        mk_buf_add(text, MK_STR("(no name)"));
    for (size_t i = 0; name.p; name = mk_host_name_at(h, ++i)) {
        mk_buf_add(text, i ? MK_STR(" ") : MK_STR(""));
        mk_buf_add(text, name);
    }
    mk_buf_add(text, MK_STR("\n    root    "));
    mk_buf_add(text, mk_host_root(h).len ? mk_host_root(h) : MK_STR("-"));
    write_certificate(text, mk_host_certificate_expires(h));
    for (size_t i = 0; mk_host_route_at(h, i, &pattern, &handler); i++) {
        mk_buf_add(text, MK_STR("\n    route   "));
        mk_buf_add(text, pattern);
        mk_buf_add(text, MK_STR("  "));
        mk_buf_add(text, handler);
    }
    mk_buf_add_char(text, '\n');
}

void shell_show_hosts(struct shell_session *s, mk_str args, bool json)
{
    const struct mk_worker *w = shell_session_shell(s)->worker;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const struct mk_host *h;
    (void)args, (void)json;
    for (size_t i = 0; (h = mk_worker_host_at(w, i)); i++)
        write_host(&text, h);
    tell(s, &text);
}

void shell_show_plugins(struct shell_session *s, mk_str args, bool json)
{
    const struct mk_worker *w = shell_session_shell(s)->worker;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const struct mk_plugin *p;
    (void)args, (void)json;
    for (size_t i = 0; (p = mk_worker_plugin_at(w, i)); i++)
        mk_buf_addf(&text, "%-12s  %-8s  %s\n", p->name, p->version ? p->version : "-",
                    p->help ? p->help : "");
    tell(s, &text);
}

void shell_show_configuration(struct shell_session *s, mk_str args, bool json)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    (void)args, (void)json;
    mk_worker_print_config(shell_session_shell(s)->worker, &text);
    tell(s, &text);
}
