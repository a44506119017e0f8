/* SPDX-License-Identifier: Apache-2.0 */
#include "show.h"

#include <monkey/tls.h>
#include <monkey/version.h>
#include <time.h>

#include "loglevel.h"
#include "table_writer.h"
#include "worker_query.h"

void cheetah_show_text(struct cheetah_session *s, struct mk_buf *text)
{
    if (text->failed)
        cheetah_session_finish_response(s, CHEETAH_FAILED,
                                        "the response exceeds %d MB, or the server is out of memory",
                                        CHEETAH_TEXT_MAX >> 20);
    else
        cheetah_session_write_output(s, mk_buf_str(text));
    if (!text->failed)
        cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
    mk_buf_free(text);
}

static uint64_t server_uptime_s(const struct mk_worker *w)
{
    int64_t passed = mk_worker_now(w) - mk_worker_server_started_at(w);
    return passed > 0 ? (uint64_t)passed : 0;
}

/* ---- The server ---- */

static const struct cheetah_column status_columns[] = {
    {"version", 0},       {"process", 0},        {"started", 0},       {"uptime", 0},
    {"workers", 0},       {"draining", 0},       {"connections", 0},   {"accepted", 0},
    {"dropped", 0},       {"requests", 0},       {"responses_1xx", 0}, {"responses_2xx", 0},
    {"responses_3xx", 0}, {"responses_4xx", 0},  {"responses_5xx", 0}, {"sent", 0},
    {"reloads", 0},       {"failed_reloads", 0}, {"log_level", 0},     {"sessions", 0},
};

struct totals {
    uint64_t workers, draining, open;
    struct mk_worker_stats all;
};

static void add_worker_stats(struct mk_worker_stats *sum, const struct mk_worker_stats *n)
{
    sum->accepted += n->accepted;
    sum->dropped += n->dropped;
    sum->requests += n->requests;
    sum->sent += n->sent;
    for (size_t i = 0; i < sizeof sum->by_class / sizeof *sum->by_class; i++)
        sum->by_class[i] += n->by_class[i];
}

static struct totals sum_worker_stats(const struct mk_worker *w)
{
    struct totals t = {0};
    struct mk_worker_stats stats;
    mk_worker_stats_ended(w, &t.all);
    for (size_t i = 0; mk_worker_stats_at(w, i, &stats); i++) {
        add_worker_stats(&t.all, &stats);
        if (!stats.pid)
            continue;
        *(stats.draining ? &t.draining : &t.workers) += 1;
        t.open += stats.open;
    }
    return t;
}

static void write_totals(struct cheetah_table_writer *writer, const struct totals *t)
{
    cheetah_table_cell_num(writer, t->workers);
    cheetah_table_cell_num(writer, t->draining);
    cheetah_table_cell_num(writer, t->open);
    cheetah_table_cell_num(writer, t->all.accepted);
    cheetah_table_cell_num(writer, t->all.dropped);
    cheetah_table_cell_num(writer, t->all.requests);
    for (size_t i = 1; i < sizeof t->all.by_class / sizeof *t->all.by_class; i++)
        cheetah_table_cell_num(writer, t->all.by_class[i]);
    cheetah_table_cell_bytes(writer, t->all.sent);
}

void cheetah_show_status(struct cheetah_session *s, mk_str args, bool json)
{
    const struct shell *shell = cheetah_session_shell(s);
    const struct mk_worker *w = shell->worker;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_table_writer writer = {.out = &text,
                                          .columns = status_columns,
                                          .n = MK_LEN(status_columns),
                                          .form = CHEETAH_LIST,
                                          .json = json};
    struct totals t = sum_worker_stats(w);
    struct mk_reloads reloads;
    mk_worker_reloads(w, &reloads, NULL);
    (void)args;
    cheetah_table_writer_begin(&writer);
    cheetah_table_cell_text(&writer, mk_str_from_c(mk_version()));
    cheetah_table_cell_num(&writer, (uint64_t)mk_worker_master_pid(w));
    cheetah_table_cell_time(&writer, mk_worker_server_started_at(w));
    cheetah_table_cell_seconds(&writer, server_uptime_s(w));
    write_totals(&writer, &t);
    cheetah_table_cell_num(&writer, reloads.done);
    cheetah_table_cell_num(&writer, reloads.failed);
    cheetah_table_cell_text(&writer, mk_str_from_c(cheetah_level_names[mk_worker_log_level(w)]));
    cheetah_table_cell_num(&writer, cheetah_session_slots_n_used(shell->cheetah->slots, w));
    cheetah_table_writer_end(&writer);
    cheetah_show_text(s, &text);
}

void cheetah_show_version(struct cheetah_session *s, mk_str args, bool json)
{
    char room[64];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    (void)args, (void)json;
    mk_buf_addf(&text, "Monkey %s", mk_version());
    cheetah_session_write_output(s, mk_buf_str(&text));
    cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
}

void cheetah_show_uptime(struct cheetah_session *s, mk_str args, bool json)
{
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)args, (void)json;
    cheetah_append_duration(&text, server_uptime_s(cheetah_session_shell(s)->worker));
    cheetah_session_write_output(s, mk_buf_str(&text));
    cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
}

/* ---- Workers ---- */

static const struct cheetah_column worker_columns[] = {
    {"process", 7},   {"started", -19}, {"connections", 11}, {"accepted", 10},
    {"requests", 10}, {"sent", 8},      {"memory", 8},       {"draining", 0},
};

static void write_worker(struct cheetah_table_writer *writer, const struct mk_worker_stats *stats,
                         const struct cheetah_worker_facts *facts)
{
    cheetah_table_cell_num(writer, (uint64_t)stats->pid);
    cheetah_table_cell_time(writer, (int64_t)stats->started);
    cheetah_table_cell_num(writer, stats->open);
    cheetah_table_cell_num(writer, stats->accepted);
    cheetah_table_cell_num(writer, stats->requests);
    cheetah_table_cell_bytes(writer, stats->sent);
    if (facts && facts->memory)
        cheetah_table_cell_bytes(writer, facts->memory);
    else
        cheetah_table_cell_null(writer);
    cheetah_table_cell_bool(writer, stats->draining);
}

static void show_workers_result(struct cheetah_session *s, const struct cheetah_worker_query *g)
{
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_table_writer writer = {
        .out = &text, .columns = worker_columns, .n = MK_LEN(worker_columns), .json = g->json};
    struct mk_worker_stats stats;
    cheetah_table_writer_begin(&writer);
    for (size_t i = 0; mk_worker_stats_at(w, i, &stats); i++)
        if (stats.pid)
            write_worker(&writer, &stats, cheetah_worker_query_find(g, stats.pid));
    cheetah_table_writer_end(&writer);
    (void)cheetah_worker_query_n_missing(s, g);
    cheetah_show_text(s, &text);
}

void cheetah_show_workers(struct cheetah_session *s, mk_str args, bool json)
{
    (void)args;
    (void)cheetah_worker_query_start(s, CHEETAH_MESSAGE_FACTS, json, show_workers_result);
}

/* ---- The cache ---- */

static const struct cheetah_column cache_columns[] = {
    {"process", 7}, {"files", 8}, {"files_max", 9}, {"memory", 8}, {"memory_max", 10},
};

static void show_cache_result(struct cheetah_session *s, const struct cheetah_worker_query *g)
{
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    struct cheetah_table_writer writer = {
        .out = &text, .columns = cache_columns, .n = MK_LEN(cache_columns), .json = g->json};
    cheetah_table_writer_begin(&writer);
    for (unsigned i = 0; i < g->n; i++) {
        const struct cheetah_worker_facts *f = &g->facts[i];
        if (!f->process)
            continue;
        cheetah_table_cell_num(&writer, (uint64_t)f->process);
        cheetah_table_cell_num(&writer, f->cache.files);
        cheetah_table_cell_num(&writer, f->cache.files_max);
        cheetah_table_cell_bytes(&writer, f->cache.memory);
        cheetah_table_cell_bytes(&writer, f->cache.memory_max);
    }
    cheetah_table_writer_end(&writer);
    cheetah_session_write_output(s, mk_buf_str(&text));
    mk_buf_free(&text);
    unsigned missing = cheetah_worker_query_n_missing(s, g);
    if (missing)
        cheetah_session_finish_response(s, CHEETAH_FAILED, "%u of %u workers did not answer", missing, g->n);
    else
        cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
}

static void show_cache_clear_result(struct cheetah_session *s, const struct cheetah_worker_query *g)
{
    unsigned missing = cheetah_worker_query_n_missing(s, g);
    if (missing)
        cheetah_session_finish_response(s, CHEETAH_FAILED,
                                        "%u of %u workers did not answer: their caches may be unchanged",
                                        missing, g->n);
    else
        cheetah_session_finish_response(s, CHEETAH_OK, "cleared in %u worker%s", g->n, g->n == 1 ? "" : "s");
}

void cheetah_show_cache(struct cheetah_session *s, mk_str args, bool json)
{
    mk_str word = mk_str_word(&args);
    if (!word.len) {
        (void)cheetah_worker_query_start(s, CHEETAH_MESSAGE_FACTS, json, show_cache_result);
    } else if (mk_str_eq_nocase(word, MK_STR("clear")) && !mk_str_word(&args).len && !json) {
        cheetah_session_log(s, "clears the cache");
        (void)cheetah_worker_query_start(s, CHEETAH_MESSAGE_CLEAR_CACHE, false, show_cache_clear_result);
    } else {
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR,
                                        "invalid arguments: expected `cache` or `cache clear`");
    }
}

/* ---- The configuration ---- */

static void write_certificate(struct mk_buf *text, const struct mk_vhost *h)
{
    char date[32];
    struct mk_vhost_certificate c;
    struct tm tm;
    if (!mk_vhost_certificate_get(h, &c))
        return;
    time_t t = (time_t)c.not_after;
    if (gmtime_r(&t, &tm) && strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &tm))
        mk_buf_addf(text, "\n    certificate until %s%s", date,
                    c.is_outdated ? ", new certificate files are invalid" : "");
}

static void write_host(struct mk_buf *text, const struct mk_vhost *h)
{
    mk_str pattern, handler, name = mk_vhost_name_at(h, 0);
    if (!name.p)
        mk_buf_add(text, MK_STR("(no name)"));
    for (size_t i = 0; name.p; name = mk_vhost_name_at(h, ++i)) {
        mk_buf_add(text, i ? MK_STR(" ") : MK_STR(""));
        mk_buf_add(text, name);
    }
    mk_buf_add(text, MK_STR("\n    root    "));
    mk_buf_add(text, mk_vhost_root(h).len ? mk_vhost_root(h) : MK_STR("-"));
    write_certificate(text, h);
    for (size_t i = 0; mk_vhost_route_at(h, i, &pattern, &handler); i++) {
        mk_buf_add(text, MK_STR("\n    route   "));
        mk_buf_add(text, pattern);
        mk_buf_add(text, MK_STR("  "));
        mk_buf_add(text, handler);
    }
    mk_buf_add_char(text, '\n');
}

void cheetah_show_hosts(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    const struct mk_vhost *h;
    (void)args, (void)json;
    for (size_t i = 0; (h = mk_worker_vhost_at(w, i)); i++)
        write_host(&text, h);
    cheetah_show_text(s, &text);
}

void cheetah_show_plugins(struct cheetah_session *s, mk_str args, bool json)
{
    const struct mk_worker *w = cheetah_session_shell(s)->worker;
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    const struct mk_plugin *p;
    (void)args, (void)json;
    for (size_t i = 0; (p = mk_worker_plugin_at(w, i)); i++)
        mk_buf_addf(&text, "%-12s  %-8s  %s\n", p->name, p->version ? p->version : "-",
                    p->help ? p->help : "");
    cheetah_show_text(s, &text);
}

void cheetah_show_configuration(struct cheetah_session *s, mk_str args, bool json)
{
    struct mk_buf text = mk_buf_growing(CHEETAH_TEXT_MAX);
    (void)args, (void)json;
    mk_worker_print_config(cheetah_session_shell(s)->worker, &text);
    cheetah_show_text(s, &text);
}
