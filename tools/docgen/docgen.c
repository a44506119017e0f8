/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what people and shells read about the program, out of the tables that the program itself runs on:
 *
 *     docgen man | bash | zsh | reference | plugins  FILE...
 *
 * The files are plugins; those that are built in are known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "conf/reference.h"
#include "settings/keys.h"
#include "setup/builtin.h"
#include "setup/object.h"

enum { TEXT_MAX = 1024 * 1024, PLUGINS_MAX = 64, COMMANDS_MAX = 32 };

/* ---- Plugins and commands ---- */

static struct {
    struct mk_object objects[PLUGINS_MAX];
    const struct mk_plugin *plugins[PLUGINS_MAX];
    size_t n;
} shelf;

/* Those of the program itself, then those that plugins bring. */
static struct mk_command commands[COMMANDS_MAX];
static size_t n_commands;

static int by_name(const void *a, const void *b)
{
    const struct mk_plugin *const *p = a, *const *q = b;
    return strcmp((*p)->name, (*q)->name);
}

static bool fill_shelf(char **files, int n)
{
    char why[MK_OBJECT_WHY];
    for (const struct mk_plugin *const *p = mk_builtin_plugins; *p && shelf.n < PLUGINS_MAX; p++)
        shelf.plugins[shelf.n++] = *p;
    for (int i = 0; i < n && shelf.n < PLUGINS_MAX; i++) {
        struct mk_object *o = &shelf.objects[shelf.n];
        if (!mk_object_open(o, mk_str_from_c(files[i]), why)) {
            fprintf(stderr, "docgen: %s: %s\n", files[i], why);
            return false;
        }
        shelf.plugins[shelf.n++] = o->plugin;
    }
    qsort(shelf.plugins, shelf.n, sizeof *shelf.plugins, by_name);
    return true;
}

static void empty_shelf(void)
{
    for (size_t i = 0; i < PLUGINS_MAX; i++)
        mk_object_close(&shelf.objects[i]);
}

static void collect_commands(void)
{
    for (size_t i = 0; i < mk_options_commands_n; i++)
        commands[n_commands++] = mk_options_commands[i];
    for (size_t i = 0; i < shelf.n; i++)
        for (const struct mk_verb *const *v = shelf.plugins[i]->verbs; v && *v && n_commands < COMMANDS_MAX;
             v++)
            commands[n_commands++] =
                (struct mk_command){.name = (*v)->name, .args = (*v)->args, .help = (*v)->help};
}

/* ---- Man page ---- */

/* A dash at the beginning of an option is a minus, not a hyphen: it must survive copying from the page. */
static void man_text(struct mk_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            mk_buf_add_char(out, '\\');
        if (*text != '`')
            mk_buf_add_char(out, *text);
    }
}

static void man_option(struct mk_buf *out, const struct mk_option *o)
{
    mk_buf_add(out, MK_STR(".TP\n"));
    if (mk_option_has_letter(o))
        mk_buf_addf(out, "\\fB\\-%c\\fR, ", o->letter);
    mk_buf_add(out, MK_STR("\\fB\\-\\-"));
    man_text(out, o->name);
    mk_buf_add(out, MK_STR("\\fR"));
    if (o->arg_name) {
        mk_buf_add(out, MK_STR(" \\fI"));
        man_text(out, o->arg_name);
        mk_buf_add(out, MK_STR("\\fR"));
    }
    mk_buf_add_char(out, '\n');
    man_text(out, o->help);
    mk_buf_add_char(out, '\n');
}

static const char man_head[] =
    ".TH MONKEY 1 \"\" \"Monkey " MK_VERSION "\" \"User Commands\"\n"
    ".SH NAME\nmonkey \\- a small and fast HTTP server\n"
    ".SH SYNOPSIS\n.B monkey\n[\\fIOPTIONS\\fR] \\fIDIR\\fR\n.br\n.B monkey\n[\\fIOPTIONS\\fR] \\fB\\-c\\fR "
    "\\fIFILE\\fR|\\fIFOLDER\\fR\n";

static const char man_body[] =
    ".SH DESCRIPTION\n"
    "With a folder, monkey serves its files on http://127.0.0.1:2001/, to this machine only unless "
    "\\fB\\-\\-public\\fR or an\n"
    "address says otherwise. With a configuration, it serves the hosts defined there. With neither, it "
    "uses\n" MK_SYSCONFDIR "/monkey. It prints its URLs and runs until it is stopped.\n";

static const char man_tail[] =
    ".SH SIGNALS\nSend them to the master process.\n"
    ".TP\n.B HUP\nReload the configuration. New workers use it while the old ones finish their requests. If "
    "it "
    "has\n"
    "mistakes, they are logged and the running configuration stays.\n"
    ".TP\n.B USR1\nReopen the logs after they were renamed.\n"
    ".TP\n.B USR2\nStart the new program, for an upgrade; the old one exits when the new one is ready.\n"
    ".TP\n.B QUIT\nFinish open requests, then exit.\n"
    ".TP\n.B TERM, INT\nExit at once.\n"
    ".SH EXIT STATUS\n.TP\n.B 0\nsuccess\n.TP\n.B 1\nruntime failure\n.TP\n.B 2\nwrong command line\n"
    ".TP\n.B 3\nmistake in the configuration\n"
    ".SH ENVIRONMENT\n.TP\n.B LISTEN_FDS, LISTEN_PID\nSockets from a service manager, used for each "
    "\\fBListen\\fR with the\n"
    "same address.\n.TP\n.B NOTIFY_SOCKET\nSocket for notifying the service manager of readiness, reloads "
    "and "
    "shutdown.\n"
    ".TP\n.B MONKEY_STATE, STATE_DIRECTORY, XDG_STATE_HOME\nLocation of the authority of "
    "\\fB\\-\\-https\\fR: "
    "see FILES.\n"
    ".SH FILES\n.TP\n.I " MK_SYSCONFDIR
    "/monkey/monkey.conf\nThe configuration, with its hosts in \\fIsites/\\fR.\n"
    ".TP\n.I $MONKEY_STATE\n.TQ\n.I $STATE_DIRECTORY\n.TQ\n.I /var/lib/monkey\n.TQ\n.I "
    "$XDG_STATE_HOME/monkey\n.TQ\n"
    ".I ~/.local/state/monkey\nThe first that applies (the third for root, the last two for other users) "
    "contains the authority of\n"
    "\\fB\\-\\-https\\fR: \\fIauthority.key\\fR, its certificate \\fIauthority.crt\\fR, and the certificates "
    "it "
    "issued.\n";

/* The server's own commands come before those of plugins. */
static bool of_server(size_t i)
{
    return i < mk_options_commands_n;
}

static void write_man(struct mk_buf *out)
{
    mk_buf_add(out, mk_str_from_c(man_head));
    for (size_t i = 0; i < n_commands; i++) {
        /* Options of the server are an error in front of a plugin's command. */
        mk_buf_addf(out, ".br\n.B monkey\n%s\\fB%s\\fR \\fI%s\\fR\n",
                    of_server(i) ? "[\\fIOPTIONS\\fR] " : "", commands[i].name, commands[i].args);
    }
    mk_buf_add(out, mk_str_from_c(man_body));
    mk_buf_add(out, MK_STR(".SH OPTIONS\n"));
    for (size_t i = 0; i < mk_options_n; i++)
        man_option(out, &mk_options[i]);
    mk_buf_add(out, MK_STR(".SH COMMANDS\n"));
    for (size_t i = 0; i < n_commands; i++) {
        mk_buf_addf(out, ".TP\n\\fB%s\\fR \\fI%s\\fR\n", commands[i].name, commands[i].args);
        man_text(out, commands[i].help);
        mk_buf_add_char(out, '\n');
        if (!of_server(i))
            mk_buf_addf(out, "\\fBmonkey %s \\-\\-help\\fR lists its options.\n", commands[i].name);
    }
    mk_buf_add(out, mk_str_from_c(man_tail));
}

/* ---- Completion ---- */

static void bash_case(struct mk_buf *out, enum mk_option_arg arg, const char *action)
{
    const char *between = "";
    for (size_t i = 0; i < mk_options_n; i++) {
        const struct mk_option *o = &mk_options[i];
        if (o->arg != arg)
            continue;
        if (mk_option_has_letter(o))
            mk_buf_addf(out, "%s-%c|--%s", between, o->letter, o->name);
        else
            mk_buf_addf(out, "%s--%s", between, o->name);
        between = "|";
    }
    mk_buf_addf(out, ")\n            %s\n            return ;;\n        ", action);
}

static void write_bash(struct mk_buf *out)
{
    mk_buf_add(
        out,
        MK_STR(
            "# bash completion for monkey\n_monkey()\n{\n    local IFS=$'\\n' "
            "cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n    case $prev in\n        "));
    bash_case(out, MK_ARG_FILE, "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))");
    bash_case(out, MK_ARG_FOLDER, "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))");
    bash_case(out, MK_ARG_WORD, "COMPREPLY=()");
    mk_buf_add(out, MK_STR("esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W $'"));
    for (size_t i = 0; i < mk_options_n; i++) {
        if (mk_option_has_letter(&mk_options[i]))
            mk_buf_addf(out, "-%c\\n", mk_options[i].letter);
        mk_buf_addf(out, "--%s\\n", mk_options[i].name);
    }
    mk_buf_add(out, MK_STR("' -- \"$cur\"))\n        return\n    fi\n    compopt -o filenames\n    "
                           "COMPREPLY=($(compgen -W $'"));
    for (size_t i = 0; i < n_commands; i++)
        mk_buf_addf(out, "%s\\n", commands[i].name);
    mk_buf_add(out, MK_STR("' -- \"$cur\") $(compgen -d -- \"$cur\"))\n}\ncomplete -F _monkey monkey\n"));
}

/* Square brackets end a description, colons separate its parts. */
static void zsh_text(struct mk_buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            mk_buf_add_char(out, '\\');
        if (*text == '\'')
            mk_buf_add(out, MK_STR("'\\''"));
        else
            mk_buf_add_char(out, *text);
    }
}

static void zsh_option(struct mk_buf *out, const struct mk_option *o)
{
    static const char *const actions[] = {
        [MK_ARG_NONE] = "", [MK_ARG_FILE] = ":_files", [MK_ARG_FOLDER] = ":_files -/", [MK_ARG_WORD] = ":"};
    if (mk_option_has_letter(o))
        mk_buf_addf(out, "    '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else
        mk_buf_addf(out, "    '--%s[", o->name);
    zsh_text(out, o->help);
    mk_buf_add_char(out, ']');
    if (o->arg_name) {
        mk_buf_add_char(out, ':');
        zsh_text(out, o->arg_name);
    }
    mk_buf_addf(out, "%s' \\\n", actions[o->arg]);
}

static void write_zsh(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("#compdef monkey\n_arguments -s \\\n"));
    for (size_t i = 0; i < mk_options_n; i++)
        zsh_option(out, &mk_options[i]);
    mk_buf_add(
        out,
        MK_STR("    '1:folder or command:_alternative \"folders:folder:_files -/\" \"commands:command:("));
    for (size_t i = 0; i < n_commands; i++)
        mk_buf_addf(out, i ? " %s" : "%s", commands[i].name);
    mk_buf_add(out, MK_STR(")\"' \\\n    '*: :'\n"));
}

/* ---- Configuration ---- */

static void write_reference(struct mk_buf *out)
{
    mk_buf_add(
        out,
        MK_STR(
            "# Configuration reference\n\n<!-- Generated from the tables in src/settings/keys.c by `make "
            "docs`. -->\n\n[The configuration format](configuration-format.md) explains the syntax. `monkey "
            "-t` checks a configuration; `monkey -T` prints what is in effect, including defaults.\n\nFor a "
            "folder, Monkey reads its `monkey.conf`. If that contains no [HOST], Monkey also reads the files "
            "in `sites/`, `default` first. It reads `monkey.mime` and `plugins.load` if they exist.\n\n"));
    for (size_t i = 0; i < MK_SECTIONS; i++)
        mk_conf_reference_print(mk_keys_tables[i], out);
}

/* ---- Plugins ---- */

static void write_section(struct mk_buf *out, const struct mk_conf_table *table)
{
    mk_buf_add_char(out, '#'); /* it goes below its plugin */
    mk_conf_reference_print(table, out);
    if (table->scope == MK_CONF_HOST)
        mk_buf_add(out, MK_STR("After a [HOST] it applies to that host; before the first one, to all hosts "
                               "without their own.\n\n"));
    else
        mk_buf_add(out, MK_STR("It applies to the whole server, wherever it appears.\n\n"));
}

static void write_plugin(struct mk_buf *out, const struct mk_plugin *p)
{
    bool is_duda = strncmp(p->name, "duda", 4) == 0; /* Duda has no folder in plugins/, it has a guide */
    mk_buf_addf(out, "## %s\n\n%s\n[How to use it](../../%s%s%s).\n\n", p->name, p->help ? p->help : "",
                is_duda ? "docs/guide/duda" : "plugins/", is_duda ? "" : p->name,
                is_duda ? ".md" : "/README.md");
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        mk_buf_addf(out, "- A handler for [ROUTES]: `%s%s%s`\n", (*h)->name, (*h)->form ? " " : "",
                    (*h)->form ? (*h)->form : "");
    for (const struct mk_verb *const *v = p->verbs; v && *v; v++)
        mk_buf_addf(out, "- A command: `monkey %s%s%s`. %s\n", (*v)->name, (*v)->args ? " " : "",
                    (*v)->args ? (*v)->args : "", (*v)->help);
    if (p->handlers || p->verbs)
        mk_buf_add_char(out, '\n');
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++)
        write_section(out, *t);
}

static void write_plugins(struct mk_buf *out)
{
    mk_buf_add(
        out,
        MK_STR(
            "# Plugin sections\n\n<!-- Generated from the tables of the plugins by `make docs`. -->\n\nThe "
            "sections, keys, handlers and commands of the bundled plugins. Load each by its name: `Load "
            "auth` in [PLUGINS]. [Plugins](../guide/using-plugins.md) explains how to use them.\n\n"));
    for (size_t i = 0; i < shelf.n; i++)
        write_plugin(out, shelf.plugins[i]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(struct mk_buf *out);
    } outputs[] = {{"man", write_man},
                   {"bash", write_bash},
                   {"zsh", write_zsh},
                   {"reference", write_reference},
                   {"plugins", write_plugins}};
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    if (argc >= 2 && !fill_shelf(argv + 2, argc - 2))
        return 1;
    collect_commands();
    for (size_t i = 0; argc >= 2 && i < MK_LEN(outputs); i++)
        if (strcmp(argv[1], outputs[i].name) == 0)
            outputs[i].write(&out);
    empty_shelf();
    if (out.failed || out.len == 0) {
        fprintf(stderr, "usage: docgen man | bash | zsh | reference | plugins  FILE...\n");
        return 2;
    }
    fwrite(out.p, 1, out.len, stdout);
    mk_buf_free(&out);
    return 0;
}
