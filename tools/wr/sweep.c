/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/sweep.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "wr/measure.h"
#include "wr/message.h"
#include "wr/warnings.h"

struct wr_range wr_step_metric_range(const struct wr_step *s, double (*of)(const struct wr_measurement *shot))
{
    struct wr_samples spread;
    wr_samples_init(&spread);
    for (size_t i = 0; i < s->n; i++)
        wr_samples_add(&spread, of(&s->shots[i]));
    struct wr_range range = wr_samples_range(&spread);
    wr_samples_fini(&spread);
    return range;
}

static bool find_and_parse_url(struct wr_sweep *s, struct load_url *url)
{
    s->url = s->options->url ? mk_str_from_c(s->options->url) : wr_command_find_url(s->command.words);
    if (!s->url.p) {
        if (!s->options->unchecked)
            return wr_message_error(
                "the command contains no http:// or https:// URL, so wr cannot check responses: name one "
                "with --url, or use --unchecked");
        return s->options->names_server ||
               wr_message_error(
                   "the command contains no URL to find the server by: name it with --pid, --port or "
                   "--name");
    }
    const char *wrong = load_url_parse(s->url, url);
    return !wrong || wr_message_error("invalid URL: %.*s: %s", MK_STR_ARG(s->url), wrong);
}

/* Decides by the name alone, without DNS. */
static bool is_local_url(const struct load_url *url)
{
    mk_str host = mk_str_from_c(url->host);
    return mk_str_eq_nocase(host, MK_STR("localhost")) || mk_str_eq(host, MK_STR("::1")) ||
           mk_str_starts(host, MK_STR("127."));
}

static bool find_server(struct wr_sweep *s, const struct load_url *url)
{
    struct wr_find find = s->options->server;
    if (!s->options->names_server) {
        if (!is_local_url(url))
            return wr_message_error(
                "%.*s does not name this machine: name the server with --pid, --port or --name",
                MK_STR_ARG(url->authority));
        find.by = WR_FIND_BY_PORT;
        find.port = url->port;
        find.url = url;
    }
    if (!wr_find_server(&find, &s->server))
        return false;
    memcpy(s->server_name, s->server.all[0].name, sizeof s->server_name);
    wr_message_sanitize(s->server_name);
    return true;
}

static bool init_command(struct wr_sweep *s)
{
    char **words = s->options->command;
    if (!words[1] && mk_str_eq(wr_command_find_url(words), mk_str_from_c(words[0]))) {
        words = wr_command_from_url(words[0], s->options->requests, s->options->keep_alive, s->arena);
        if (!words)
            return wr_message_error("out of memory");
    }
    if (!wr_command_init(&s->command, words, s->arena))
        return false;
    const char *conflict = s->options->n_steps ? wr_command_find_concurrency_conflict(&s->command) : NULL;
    return !conflict ||
           wr_message_error("the command contains %s, but the sweep sets the connections: write {c} "
                            "in place of their number",
                            conflict);
}

bool wr_sweep_init(struct wr_sweep *s, const struct wr_options *o, struct mk_arena *arena)
{
    struct load_url url = {.port = 0};
    *s = (struct wr_sweep){.options = o, .arena = arena, .started_us = mk_clock_us()};
    wr_process_tree_init(&s->server);
    s->steps = mk_arena_zalloc(arena, o->n_steps + 1, sizeof *s->steps);
    if (!s->steps)
        return wr_message_error("out of memory");
    if (!init_command(s) || !find_and_parse_url(s, &url) || !find_server(s, &url))
        return false;
    if (o->unchecked)
        return true;
    s->was_checked = wr_response_check_run(&url, s->command.fields, &o->expected, &s->checked);
    return s->was_checked;
}

/* Checks the concurrency that the client reports, because the client may parse its options differently from
 * wr. */
static bool check_concurrency(const struct wr_sweep *s, unsigned concurrency, const struct wr_result *r)
{
    if (!s->options->n_steps || r->connections < 0 || r->connections == (int64_t)concurrency ||
        wr_command_has_placeholder(&s->command))
        return true;
    return wr_message_error(
        "%s reports %lld connections, not %u: write {c} into the command in place of their number",
        s->command.kind->name, (long long)r->connections, concurrency);
}

static bool warm_up(const struct wr_sweep *s, struct wr_measure *f)
{
    f->title = "warm-up";
    if (s->options->warm_up_us && !wr_measure_warm_up(f, s->options->warm_up_us))
        return false;
    for (unsigned i = 0; i < s->options->warm_up_shots; i++) {
        struct wr_measurement shot;
        bool good = wr_measure_run(f, &shot);
        wr_measurement_fini(&shot);
        if (!good)
            return false;
    }
    return true;
}

static bool count_syscalls(struct wr_measure *f, struct wr_step *step)
{
    static bool warned;
    const char *why;
    f->title = "system calls";
    if (!wr_measure_syscalls(f, &step->syscalls, &why))
        return false;
    if (why && !warned)
        wr_message("cannot count system calls: %s", why);
    warned |= why != NULL;
    for (size_t i = 0; i < step->n; i++)
        step->shots[i].syscalls = step->syscalls;
    return true;
}

static bool run_step(struct wr_sweep *s, unsigned concurrency, struct wr_step *step)
{
    const struct wr_options *o = s->options;
    char title[64];
    struct wr_measure f = {.server = &s->server,
                           .kind = s->command.kind,
                           .words =
                               wr_command_build_argv(&s->command, o->n_steps ? concurrency : 0, s->arena),
                           .interval_us = o->interval_us,
                           .limit_us = o->limit_us,
                           .title = title};
    *step = (struct wr_step){.concurrency = concurrency, .syscalls = WR_UNKNOWN};
    step->shots = mk_arena_zalloc(s->arena, o->shots, sizeof *step->shots);
    if (!f.words || !step->shots)
        return wr_message_error("out of memory");
    if (!warm_up(s, &f))
        return false;
    f.title = title;
    for (unsigned i = 0; i < o->shots; i++) {
        (void)snprintf(title, sizeof title, "%u connections, shot %u of %u", concurrency, i + 1, o->shots);
        step->n++;
        if (!wr_measure_run(&f, &step->shots[i]) ||
            !check_concurrency(s, concurrency, &step->shots[i].reported))
            return false;
    }
    if (o->counts_syscalls && !count_syscalls(&f, step))
        return false;
    wr_warnings_print(s, step);
    return true;
}

bool wr_sweep_run(struct wr_sweep *s, const struct wr_sweep_callback *listener)
{
    const struct wr_options *o = s->options;
    unsigned command_concurrency = wr_command_concurrency(&s->command);
    for (size_t i = 0; i < (o->n_steps ? o->n_steps : 1); i++) {
        struct wr_step *step = &s->steps[s->n_begun++];
        if (!run_step(s, o->n_steps ? o->steps[i] : command_concurrency, step))
            return false;
        s->n_steps++;
        if (!listener->on_step(listener->data, s, step))
            return false;
    }
    s->ended_us = mk_clock_us();
    return true;
}

void wr_sweep_fini(struct wr_sweep *s)
{
    for (size_t i = 0; i < s->n_begun; i++)
        for (size_t k = 0; k < s->steps[i].n; k++)
            wr_measurement_fini(&s->steps[i].shots[k]);
    wr_process_tree_fini(&s->server);
}
