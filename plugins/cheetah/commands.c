/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <errno.h>

#include "connections.h"
#include "loglevel.h"
#include "recorded.h"
#include "reload.h"
#include "show.h"
#include "statistics.h"

struct command {
    const char *name, *alias;
    char letter; /* Monkey's short form, after a backslash; 0: none */
    const char *args, *help;
    bool has_json;
    void (*run)(struct cheetah_session *s, mk_str args, bool json);
};

static void help_command(struct cheetah_session *s, mk_str args, bool json);

static void quit_command(struct cheetah_session *s, mk_str args, bool json)
{
    (void)args, (void)json;
    cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
    cheetah_session_close_later(s);
}

/* Does nothing, because the client clears its screen itself. */
static void clear_command(struct cheetah_session *s, mk_str args, bool json)
{
    (void)args, (void)json;
    cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
}

/* These errors leave the servers unchanged. After others, such as a StateFile that cannot be written, the change
 * may have taken effect. */
static bool is_change_refused(int error)
{
    return error == -EINVAL || error == -ENOENT || error == -EEXIST || error == -ENOSPC;
}

/* A command whose result follows. The session may end before. */
struct upstream_change {
    struct shell *shell;
    uint64_t token; /* of the session's response */
    char client[64];
    size_t args_len;
    char args[];
};

static void finish_upstream_command(struct cheetah_session *s, mk_str args, int e, mk_str text)
{
    if (!is_change_refused(e))
        cheetah_session_log_command(s, "upstream", args, text);
    cheetah_session_finish_response(s,
                                    e == 0         ? CHEETAH_OK
                                    : e == -EINVAL ? CHEETAH_USAGE_ERROR
                                                   : CHEETAH_FAILED,
                                    "%.*s", MK_STR_ARG(text));
}

static void on_upstream_changed(void *ctx, int error, mk_str text)
{
    struct upstream_change *c = ctx;
    mk_str args = mk_str_of(c->args, c->args_len);
    struct cheetah_session *s = cheetah_session_find(c->shell, c->token);
    if (s) {
        finish_upstream_command(s, args, error, text);
        cheetah_session_advance(s);
    } else {
        mk_worker_log(c->shell->worker, MK_LOG_INFO, "shell: %s has disconnected; its upstream %.*s: %.*s",
                      c->client, MK_STR_ARG(args), MK_STR_ARG(text));
    }
    mk_mem_free(c);
}

static const struct cheetah_deferred_command upstream_job = {.on_timer = NULL};

static struct upstream_change *new_change(struct cheetah_session *s, mk_str args)
{
    struct upstream_change *c = mk_mem_alloc(sizeof *c + args.len);
    if (!c)
        return NULL;
    *c = (struct upstream_change){.shell = cheetah_session_shell(s), .args_len = args.len};
    if (args.len)
        memcpy(c->args, args.p, args.len);
    cheetah_session_describe_client(s, c->client, sizeof c->client);
    return c;
}

/* `upstream NAME add SERVER` and others: the plugin upstream runs them. */
static void upstream_command(struct cheetah_session *s, mk_str args, bool json)
{
    char buf[512];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    (void)json;
    struct upstream_change *c = new_change(s, args);
    if (!c || !cheetah_session_defer_response(s, &upstream_job, 1)) {
        if (!c)
            cheetah_session_finish_response(s, CHEETAH_FAILED, "out of memory");
        mk_mem_free(c);
        return;
    }
    c->token = cheetah_session_token(s);
    const struct mk_command_end end = {on_upstream_changed, c};
    int e = mk_worker_run_command(cheetah_session_shell(s)->worker, MK_STR("upstream"), args, &out, &end);
    if (e == -EINPROGRESS)
        return;
    mk_mem_free(c);
    if (e == -ENOENT && !out.len)
        mk_buf_add(&out, MK_STR("no route uses an upstream"));
    finish_upstream_command(s, args, e, mk_buf_str(&out));
}

static const struct command commands[] = {
    {"help", "?", 'h', NULL, "this list", false, help_command},
    {"status", NULL, 's', NULL, "totals since the server started", true, cheetah_show_status},
    {"workers", NULL, 'w', NULL, "the worker processes", true, cheetah_show_workers},
    {"connections", NULL, 0, NULL, "open connections of all workers", true, cheetah_connections_command},
    {"upstreams", NULL, 0, NULL, "the backend servers", true, cheetah_statistics_show_upstreams},
    {"upstream", NULL, 0, "NAME ...", "`add`, `remove`, `drain`, `enable` or `weight`, then a server", false,
     upstream_command},
    {"packages", NULL, 0, NULL, "calls of services to stores, databases and others", true,
     cheetah_statistics_show_packages},
    {"routes", NULL, 0, NULL, "the routes of services: counts and durations", true,
     cheetah_statistics_show_routes},
    {"components", NULL, 0, NULL, "components of services that are not ready", true,
     cheetah_statistics_show_components},
    {"metrics", NULL, 0, "[PREFIX]", "the metrics of services", true, cheetah_statistics_show_metrics},
    {"top", NULL, 0, "[...]", "requests per second by host, route, client or backend: see `monkey top`", true,
     cheetah_recorded_top},
    {"requests", NULL, 0, "[...]", "the recorded requests: see `monkey recorder`", true,
     cheetah_recorded_requests},
    {"hosts", "vhosts", 'v', NULL, "hosts with names, roots and routes", false, cheetah_show_hosts},
    {"plugins", NULL, 'g', NULL, "loaded plugins, in the order of their hooks", false, cheetah_show_plugins},
    {"configuration", "config", 'f', NULL, "the effective configuration, including defaults", false,
     cheetah_show_configuration},
    {"cache", NULL, 0, "[clear]", "shows or clears the caches of open files", true, cheetah_show_cache},
    {"reload", NULL, 0, "[...]",
     "reloads the configuration; `--confirm TIME`: returns to the previous one unless confirmed", false,
     cheetah_reload_command},
    {"confirm", NULL, 0, NULL, "keeps the configuration of `reload --confirm`", false,
     cheetah_confirm_command},
    {"rollback", NULL, 0, "[NUMBER]", "returns to an earlier configuration", false, cheetah_rollback_command},
    {"loglevel", NULL, 0, "[LEVEL]", "shows or sets the log level: error, warn, info or debug", false,
     cheetah_loglevel_command},
    {"version", NULL, 0, NULL, "the version of the server", false, cheetah_show_version},
    {"uptime", NULL, 'u', NULL, "time since the server started", false, cheetah_show_uptime},
    {"clear", NULL, 'c', NULL, "clears the screen", false, clear_command},
    {"quit", "exit", 'q', NULL, "ends the session", false, quit_command},
};

enum { COMMANDS = MK_LEN(commands), SHOWN = 40 };

static void help_command(struct cheetah_session *s, mk_str args, bool json)
{
    char buf[4096];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)args, (void)json;
    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command *c = &commands[i];
        char letter[4] = {'\\', c->letter, '\0'};
        mk_buf_addf(&text, "%-14s %-8s %-2s %s\n", c->name, c->args ? c->args : "", c->letter ? letter : "",
                    c->help);
    }
    mk_buf_add(&text, MK_STR("json COMMAND            status, workers, connections, upstreams, packages, "
                             "routes, top, requests and cache as "
                             "JSON\n"));
    cheetah_session_write_output(s, mk_buf_str(&text));
    cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
}

static const struct command *find_command(mk_str word)
{
    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command *c = &commands[i];
        char letter[2] = {'\\', c->letter};
        if (mk_str_eq_nocase(word, mk_str_from_c(c->name)) ||
            (c->alias && mk_str_eq_nocase(word, mk_str_from_c(c->alias))) ||
            (c->letter && mk_str_eq(word, mk_str_of(letter, 2))))
            return c;
    }
    return NULL;
}

static void report_unknown_command(struct cheetah_session *s, mk_str word)
{
    char buf[4 * SHOWN];
    struct mk_buf shown = mk_buf_fixed(buf, sizeof buf);
    mk_log_escape(&shown, mk_str_first(word, SHOWN));
    cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR, "unknown command `%.*s%s`: see `help`",
                                    MK_STR_ARG(mk_buf_str(&shown)), word.len > SHOWN ? "..." : "");
}

void cheetah_command_run(struct cheetah_session *s, mk_str line)
{
    mk_str word = mk_str_word(&line);
    bool json = mk_str_eq_nocase(word, MK_STR("json")) || mk_str_eq_nocase(word, MK_STR("--json"));
    if (json)
        word = mk_str_word(&line);
    line = mk_str_trim(line);
    const struct command *c = find_command(word);
    if (!word.len && !json)
        cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
    else if (!c)
        report_unknown_command(s, word);
    else if (json && !c->has_json)
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR, "`%s` has no JSON", c->name);
    else if (line.len && !c->args)
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR, "`%s` takes no arguments", c->name);
    else
        c->run(s, line, json);
}
