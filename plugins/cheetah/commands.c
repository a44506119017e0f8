/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <monkey/version.h>
#include <unistd.h>

#include "connections.h"
#include "levels.h"
#include "protocol.h"
#include "reload.h"
#include "show.h"

struct command {
    const char *name, *alias;
    char letter; /* behind a backslash: Monkey's short form; 0: there is none */
    const char *args, *help;
    bool has_json;
    void (*run)(struct shell_session *s, mk_str args, bool json);
};

static void help(struct shell_session *s, mk_str args, bool json);

static void quit(struct shell_session *s, mk_str args, bool json)
{
    (void)args, (void)json;
    shell_session_answer(s, SHELL_DONE, "%s", "");
    shell_session_dismiss(s);
}

/* The screen is the client's. */
static void clear(struct shell_session *s, mk_str args, bool json)
{
    (void)args, (void)json;
    shell_session_answer(s, SHELL_DONE, "%s", "");
}

static const struct command commands[] = {
    {"help", "?", 'h', NULL, "this list", false, help},
    {"status", NULL, 's', NULL, "what the server did since it began", true, shell_show_status},
    {"workers", NULL, 'w', NULL, "the processes that serve", true, shell_show_workers},
    {"connections", NULL, 0, NULL, "who is connected, to all workers", true, shell_connections},
    {"hosts", "vhosts", 'v', NULL, "hosts with their names, roots and routes", false, shell_show_hosts},
    {"plugins", NULL, 'g', NULL, "plugins that are loaded, in the order of their hooks", false,
     shell_show_plugins},
    {"configuration", "config", 'f', NULL, "what is in effect, defaults included", false,
     shell_show_configuration},
    {"cache", NULL, 0, "[clear]", "what the caches of open files hold; empties them", true, shell_show_cache},
    {"reload", NULL, 0, NULL, "loads the configuration anew", false, shell_reload},
    {"loglevel", NULL, 0, "[LEVEL]", "what the error log holds: error, warn, info or debug", false,
     shell_level},
    {"version", NULL, 0, NULL, "the version of the server", false, shell_show_version},
    {"uptime", NULL, 'u', NULL, "how long it has been there", false, shell_show_uptime},
    {"clear", NULL, 'c', NULL, "clears the screen", false, clear},
    {"quit", "exit", 'q', NULL, "ends the session", false, quit},
};

enum { COMMANDS = sizeof commands / sizeof commands[0], SHOWN = 40 };

static void help(struct shell_session *s, mk_str args, bool json)
{
    char room[4096];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    (void)args, (void)json;
    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command *c = &commands[i];
        char letter[4] = {'\\', c->letter, '\0'};
        mk_buf_addf(&text, "%-14s %-8s %-2s %s\n", c->name, c->args ? c->args : "", c->letter ? letter : "",
                    c->help);
    }
    mk_buf_add(&text, MK_STR("json COMMAND            status, workers, connections and cache as JSON\n"));
    shell_session_say(s, mk_buf_str(&text));
    shell_session_answer(s, SHELL_DONE, "%s", "");
}

static const struct command *find(mk_str word)
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

static void complain(struct shell_session *s, mk_str word)
{
    char room[4 * SHOWN];
    struct mk_buf shown = mk_buf_fixed(room, sizeof room);
    mk_log_escape(&shown, mk_str_take(word, SHOWN));
    shell_session_answer(s, SHELL_MISUSED, "there is no command `%.*s%s`: see `help`",
                         MK_STR_ARG(mk_buf_str(&shown)), word.len > SHOWN ? "..." : "");
}

void shell_command_run(struct shell_session *s, mk_str line)
{
    mk_str word = mk_str_word(&line);
    bool json = mk_str_eq_nocase(word, MK_STR("json")) || mk_str_eq_nocase(word, MK_STR("--json"));
    if (json)
        word = mk_str_word(&line);
    line = mk_str_trim(line);
    const struct command *c = find(word);
    if (!word.len && !json)
        shell_session_answer(s, SHELL_DONE, "%s", "");
    else if (!c)
        complain(s, word);
    else if (json && !c->has_json)
        shell_session_answer(s, SHELL_MISUSED, "`%s` has no JSON", c->name);
    else if (line.len && !c->args)
        shell_session_answer(s, SHELL_MISUSED, "nothing may follow `%s`", c->name);
    else
        c->run(s, line, json);
}

void shell_command_greet(struct shell_session *s)
{
    shell_session_answer(s, SHELL_DONE, SHELL_GREETING " monkey/" MONKEY_VERSION " process %d",
                         (int)getpid());
}
