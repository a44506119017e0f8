/* SPDX-License-Identifier: Apache-2.0 */
/* Generates man pages, shell completions and reference pages from the program's own tables:
 *
 *     docgen man | bash | zsh | reference | plugins | duda  FILE...
 *     docgen man-COMMAND  FILE...      the man page of a plugin's command, from its --help
 *
 * FILE is a loadable plugin; built-in plugins are always included. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/reference.h"
#include "server/certificates_command.h"
#include "server/explain.h"
#include "server/options.h"
#include "setup/builtin.h"
#include "setup/keys.h"
#include "setup/plugin_object.h"

enum { TEXT_MAX = 1024 * 1024, PLUGINS_MAX = 64, COMMANDS_MAX = 32 };

/* ---- Plugins and commands ---- */

static struct {
    struct mk_plugin_object objects[PLUGINS_MAX];
    const struct mk_plugin *plugins[PLUGINS_MAX];
    size_t n;
} loaded;

/* The server's own commands, then those of plugins. */
static struct mk_cli_command commands[COMMANDS_MAX];
static size_t n_commands;

static int compare_names(const void *a, const void *b)
{
    const struct mk_plugin *const *p = a, *const *q = b;
    return strcmp((*p)->name, (*q)->name);
}

static bool load_plugins(char **files, int n)
{
    char why[MK_PLUGIN_OBJECT_ERROR_MAX];
    for (const struct mk_plugin *const *p = mk_builtin_plugins; *p && loaded.n < PLUGINS_MAX; p++)
        loaded.plugins[loaded.n++] = *p;
    for (int i = 0; i < n && loaded.n < PLUGINS_MAX; i++) {
        struct mk_plugin_object *o = &loaded.objects[loaded.n];
        if (!mk_plugin_object_open(o, mk_str_from_c(files[i]), why)) {
            fprintf(stderr, "docgen: %s: %s\n", files[i], why);
            return false;
        }
        loaded.plugins[loaded.n++] = o->plugin;
    }
    qsort(loaded.plugins, loaded.n, sizeof *loaded.plugins, compare_names);
    return true;
}

static void unload_plugins(void)
{
    for (size_t i = 0; i < PLUGINS_MAX; i++)
        mk_plugin_object_close(&loaded.objects[i]);
}

static void collect_commands(void)
{
    for (size_t i = 0; i < mk_options_commands_n; i++)
        commands[n_commands++] = mk_options_commands[i];
    for (size_t i = 0; i < loaded.n; i++)
        for (const struct mk_command *const *v = loaded.plugins[i]->commands;
             v && *v && n_commands < COMMANDS_MAX; v++)
            commands[n_commands++] =
                (struct mk_cli_command){.name = (*v)->name, .args = (*v)->args, .help = (*v)->help};
}

/* ---- Man page ---- */

/* Option dashes must be minus signs instead of hyphens, so that options can be copied from the page. */
static void append_man_text(struct mk_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            mk_buf_add_char(out, '\\');
        if (*text != '`')
            mk_buf_add_char(out, *text);
    }
}

static void append_man_option(struct mk_buf *out, const struct mk_option *o)
{
    mk_buf_add(out, MK_STR(".TP\n"));
    if (mk_option_has_letter(o))
        mk_buf_addf(out, "\\fB\\-%c\\fR, ", o->letter);
    mk_buf_add(out, MK_STR("\\fB\\-\\-"));
    append_man_text(out, o->name);
    mk_buf_add(out, MK_STR("\\fR"));
    if (o->arg_name) {
        mk_buf_add(out, MK_STR(" \\fI"));
        append_man_text(out, o->arg_name);
        mk_buf_add(out, MK_STR("\\fR"));
    }
    mk_buf_add_char(out, '\n');
    append_man_text(out, o->help);
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
    "uses\n" MK_SYSCONFDIR "/monkey. It prints its URLs and runs until it is stopped.\n"
    ".PP\nThe name of a command, such as \\fBbuild\\fR, is always that command. A folder of the same name "
    "is\n"
    "\\fB./build\\fR.\n";

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
    ".TP\n.B WATCHDOG_USEC, WATCHDOG_PID\nThe master notifies the watchdog of the service manager twice "
    "within "
    "this\ntime.\n"
    ".TP\n.B MONKEY_STATE, STATE_DIRECTORY, XDG_STATE_HOME\nLocation of the authority of "
    "\\fB\\-\\-https\\fR: "
    "see FILES.\n"
    ".SH FILES\n.TP\n.I " MK_SYSCONFDIR
    "/monkey/monkey.conf\nThe configuration, with its hosts in \\fIsites/\\fR.\n"
    ".TP\n.I $MONKEY_STATE\n.TQ\n.I $STATE_DIRECTORY\n.TQ\n.I /var/lib/monkey\n.TQ\n.I "
    "$XDG_STATE_HOME/monkey\n.TQ\n"
    ".I ~/.local/state/monkey\nThe first that applies (the third for root, the last two for other users) "
    "contains the authority of\n"
    "\\fB\\-\\-https\\fR: \\fIca.key\\fR, its certificate \\fIca.crt\\fR, and the certificates "
    "it "
    "issued.\n";

/* The server's own commands come first in the table. */
static bool is_server_command(size_t i)
{
    return i < mk_options_commands_n;
}

static void write_server_man_page(struct mk_buf *out)
{
    mk_buf_add(out, mk_str_from_c(man_head));
    for (size_t i = 0; i < n_commands; i++) {
        /* Options of the server may precede only its own commands, not those of plugins. */
        mk_buf_addf(out, ".br\n.B monkey\n%s\\fB%s\\fR \\fI%s\\fR\n",
                    is_server_command(i) ? "[\\fIOPTIONS\\fR] " : "", commands[i].name, commands[i].args);
    }
    mk_buf_add(out, mk_str_from_c(man_body));
    mk_buf_add(out, MK_STR(".SH OPTIONS\n"));
    for (size_t i = 0; i < mk_options_n; i++)
        append_man_option(out, &mk_options[i]);
    mk_buf_add(out, MK_STR(".SH COMMANDS\n"));
    for (size_t i = 0; i < n_commands; i++) {
        mk_buf_addf(out, ".TP\n\\fB%s\\fR \\fI%s\\fR\n", commands[i].name, commands[i].args);
        append_man_text(out, commands[i].help);
        mk_buf_add_char(out, '\n');
        if (!is_server_command(i))
            mk_buf_addf(out, "\\fBmonkey %s \\-\\-help\\fR lists its options.\n", commands[i].name);
    }
    size_t n;
    const struct mk_option *explain = mk_explain_options(&n);
    mk_buf_add(out, MK_STR(".SH OPTIONS OF EXPLAIN\n"));
    for (size_t i = 0; i < n; i++)
        append_man_option(out, &explain[i]);
    const struct mk_option *certificates = mk_certificates_command_options(&n);
    mk_buf_add(out, MK_STR(".SH OPTIONS OF CERTIFICATES\n"));
    for (size_t i = 0; i < n; i++)
        append_man_option(out, &certificates[i]);
    mk_buf_add(out, mk_str_from_c(man_tail));
}

/* ---- Man pages of commands ---- */

static const struct mk_command *find_command(const char *name)
{
    for (size_t i = 0; i < loaded.n; i++)
        for (const struct mk_command *const *v = loaded.plugins[i]->commands; v && *v; v++)
            if (strcmp((*v)->name, name) == 0)
                return *v;
    return NULL;
}

/* Captures the output of the command with --help. */
static bool capture_help(const struct mk_command *verb, struct mk_buf *out)
{
    char name[64], help[] = "--help", buf[4096];
    char *argv[] = {name, help, NULL};
    int fds[2], status = -1;
    ssize_t n;
    snprintf(name, sizeof name, "%s", verb->name);
    if (pipe(fds) < 0)
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        int code = verb->run(2, argv);
        fflush(NULL);
        _exit(code);
    }
    close(fds[1]);
    while ((n = read(fds[0], buf, sizeof buf)) > 0)
        mk_buf_add(out, mk_str_of(buf, (size_t)n));
    close(fds[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void append_man_line(struct mk_buf *out, mk_str text)
{
    char *copy = strndup(text.p ? text.p : "", text.len);
    bool is_command = text.len && (text.p[0] == '.' || text.p[0] == '\'');
    if (is_command)
        mk_buf_add(out, MK_STR("\\&"));
    append_man_text(out, copy ? copy : "");
    free(copy);
}

/* Parses "  -p, --port PORT  DESCRIPTION" or "  COMMAND  DESCRIPTION": two spaces end the term. */
static void append_man_help_item(struct mk_buf *out, mk_str line)
{
    line = mk_str_trim(line);
    size_t end = 0;
    while (end < line.len && !(line.p[end] == ' ' && end + 1 < line.len && line.p[end + 1] == ' '))
        end++;
    mk_buf_add(out, MK_STR(".TP\n\\fB"));
    append_man_line(out, mk_str_first(line, end));
    mk_buf_add(out, MK_STR("\\fR\n"));
    append_man_line(out, mk_str_trim(mk_str_skip(line, end)));
    mk_buf_add_char(out, '\n');
}

static void append_man_help(struct mk_buf *out, mk_str help)
{
    bool in_options = false;
    while (help.len) {
        mk_str line = mk_str_cut(&help, '\n');
        bool is_option = mk_str_starts(line, MK_STR("  -"));
        if (is_option && !in_options)
            mk_buf_add(out, MK_STR(".SH OPTIONS\n"));
        if (in_options && line.len && !is_option) {
            mk_buf_add(out, MK_STR(".SH NOTES\n"));
            in_options = false;
        }
        in_options = in_options || is_option;
        if (is_option || mk_str_starts(line, MK_STR("  "))) {
            append_man_help_item(out, line);
        } else if (line.len) {
            append_man_line(out, line);
            mk_buf_add_char(out, '\n');
        } else if (!in_options && help.len && !mk_str_starts(help, MK_STR("  -"))) {
            mk_buf_add(out, MK_STR(".PP\n"));
        }
    }
}

static void append_man_examples(struct mk_buf *out, const char *verb)
{
    static const char *const known[][2] = {
        {"run", "monkey run hello.c"},
        {"run", "monkey run -p 0.0.0.0:8080 -i shop.conf shop.c"},
        {"run", "CC=clang monkey run services/"},
        {"new", "monkey new shop"},
        {"test", "monkey test"},
        {"test", "monkey test -i test.conf shop_test.c"},
        {"routes", "monkey routes shop.c"},
        {"doc", "monkey doc -o shop.html shop.c"},
        {"openapi", "monkey openapi -o openapi.json shop.c"},
        {"shell", "monkey shell --json upstreams"},
        {"shell", "monkey shell upstream app drain 10.0.0.5:8080"},
        {"shell", "monkey shell upstream app add 10.0.0.6:8080 weight=2 --save"},
        {"top", "monkey top"},
        {"top", "monkey top --socket /run/monkey/cheetah.sock --by routes"},
        {"top", "monkey top --once --json --by clients -n 10"},
        {"recorder", "monkey recorder --last 5m --failed"},
        {"recorder", "monkey recorder --socket /run/monkey/cheetah.sock --json"},
        {"build", "monkey build -o /usr/local/lib/shop.so shop.c"},
    };
    mk_buf_add(out, MK_STR(".SH EXAMPLES\n.nf\n"));
    for (size_t i = 0; i < MK_LEN(known); i++) {
        if (strcmp(known[i][0], verb) != 0)
            continue;
        append_man_text(out, known[i][1]);
        mk_buf_add_char(out, '\n');
    }
    mk_buf_add(out, MK_STR(".fi\n"));
}

static void write_command_man_page(const char *name, struct mk_buf *out)
{
    const struct mk_command *verb = find_command(name);
    struct mk_buf help = mk_buf_growing(TEXT_MAX);
    static const mk_str usage = MK_STR_INIT("usage: ");
    if (!verb || !capture_help(verb, &help) || !mk_str_starts(mk_buf_str(&help), usage)) {
        fprintf(stderr, "docgen: there is no help about `%s`\n", name);
        return;
    }
    mk_str rest = mk_str_skip(mk_buf_str(&help), usage.len), synopsis = mk_str_cut(&rest, '\n');
    mk_buf_addf(
        out, ".TH MONKEY-%s 1 \"\" \"Monkey " MK_VERSION "\" \"User Commands\"\n.SH NAME\nmonkey\\-%s \\- ",
        name, name);
    append_man_text(out, verb->help);
    mk_buf_add(out, MK_STR("\n.SH SYNOPSIS\n.B "));
    append_man_line(out, synopsis);
    mk_buf_add(out, MK_STR("\n.SH DESCRIPTION\n"));
    while (rest.len && rest.p[0] == '\n')
        rest = mk_str_skip(rest, 1);
    append_man_help(out, rest);
    append_man_examples(out, name);
    mk_buf_add(
        out,
        MK_STR(
            ".SH EXIT STATUS\n0 if all went well, 1 if it did not, 2 for a wrong command line.\n"
            ".SH SEE ALSO\n.BR monkey (1);\nthe guide to Duda, \\fIdocs/guide/duda.md\\fR of the manual.\n"));
    mk_buf_free(&help);
}

/* ---- Completion ---- */

/* The options of the program, then those of `explain` and of `certificates`; NULL: no more. */
static const struct mk_option *option_at(size_t i)
{
    size_t n_explain, n_certificates;
    const struct mk_option *explain = mk_explain_options(&n_explain),
                           *certificates = mk_certificates_command_options(&n_certificates);
    if (i < mk_options_n)
        return &mk_options[i];
    i -= mk_options_n;
    if (i < n_explain)
        return &explain[i];
    i -= n_explain;
    return i < n_certificates ? &certificates[i] : NULL;
}

static void append_bash_case(struct mk_buf *out, enum mk_option_arg arg, const char *action)
{
    const char *between = "";
    const struct mk_option *o;
    for (size_t i = 0; (o = option_at(i)); i++) {
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

/* The arguments of a command are files; those of `help` are commands. */
static const char bash_command_args[] =
    "    if [[ $COMP_CWORD -gt 1 && $'\\n'$commands == *$'\\n'\"${COMP_WORDS[1]}\"$'\\n'* ]]; then\n"
    "        if [[ ${COMP_WORDS[1]} == help ]]; then\n"
    "            COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
    "        else\n"
    "            compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "        fi\n"
    "        return\n"
    "    fi\n";

/* Does not offer a folder that has the name of a command, such as `build`: bash would complete the command as
 * `build/`. Users can still type `./build`. */
static const char bash_first_word[] =
    "' -- \"$cur\"))\n        return\n    fi\n"
    "    COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
    "    for folder in $(compgen -d -- \"$cur\"); do\n"
    "        [[ $'\\n'$commands == *$'\\n'\"$folder\"$'\\n'* ]] && continue\n"
    "        compopt -o filenames\n"
    "        COMPREPLY+=(\"$folder\")\n"
    "    done\n}\ncomplete -F _monkey monkey\n";

static void write_bash_completion(struct mk_buf *out)
{
    mk_buf_add(
        out, MK_STR("# bash completion for monkey\n_monkey()\n{\n    local IFS=$'\\n' folder "
                    "cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n    local commands=$'"));
    for (size_t i = 0; i < n_commands; i++)
        mk_buf_addf(out, "%s\\n", commands[i].name);
    mk_buf_add(out, MK_STR("'\n"));
    mk_buf_add(out, mk_str_from_c(bash_command_args));
    mk_buf_add(out, MK_STR("    case $prev in\n        "));
    append_bash_case(out, MK_ARG_FILE, "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))");
    append_bash_case(out, MK_ARG_FOLDER, "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))");
    append_bash_case(out, MK_ARG_WORD, "COMPREPLY=()");
    mk_buf_add(out, MK_STR("esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W $'"));
    const struct mk_option *o;
    for (size_t i = 0; (o = option_at(i)); i++) {
        if (mk_option_has_letter(o))
            mk_buf_addf(out, "-%c\\n", o->letter);
        mk_buf_addf(out, "--%s\\n", o->name);
    }
    mk_buf_add(out, mk_str_from_c(bash_first_word));
}

/* In zsh specifications, brackets delimit the description and colons separate fields. */
static void append_zsh_text(struct mk_buf *out, const char *text)
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

static void append_zsh_option(struct mk_buf *out, const struct mk_option *o)
{
    static const char *const actions[] = {
        [MK_ARG_NONE] = "", [MK_ARG_FILE] = ":_files", [MK_ARG_FOLDER] = ":_files -/", [MK_ARG_WORD] = ":"};
    if (mk_option_has_letter(o))
        mk_buf_addf(out, "    '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else
        mk_buf_addf(out, "    '--%s[", o->name);
    append_zsh_text(out, o->help);
    mk_buf_add_char(out, ']');
    if (o->arg_name) {
        mk_buf_add_char(out, ':');
        append_zsh_text(out, o->arg_name);
    }
    mk_buf_addf(out, "%s' \\\n", actions[o->arg]);
}

static void write_zsh_completion(struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("#compdef monkey\n_arguments -s \\\n"));
    const struct mk_option *o;
    for (size_t i = 0; (o = option_at(i)); i++)
        append_zsh_option(out, o);
    mk_buf_add(
        out,
        MK_STR("    '1:folder or command:_alternative \"folders:folder:_files -/\" \"commands:command:("));
    for (size_t i = 0; i < n_commands; i++)
        mk_buf_addf(out, i ? " %s" : "%s", commands[i].name);
    mk_buf_add(out, MK_STR(")\"' \\\n    '*:file:_files'\n"));
}

/* ---- Configuration ---- */

static void write_config_reference(struct mk_buf *out)
{
    mk_buf_add(
        out,
        MK_STR(
            "# Configuration reference\n\n<!-- Generated from the tables in src/setup/keys.c by `make "
            "docs`. -->\n\n[The configuration format](configuration-format.md) explains the syntax. `monkey "
            "-t` checks a configuration; `monkey -T` prints what is in effect, including defaults.\n\nFor a "
            "folder, Monkey reads its `monkey.conf`. If that contains no [HOST], Monkey also reads the files "
            "in `sites/`, `default` first. It reads `monkey.mime` and `plugins.load` if they exist.\n\n"));
    for (size_t i = 0; i < MK_SECTIONS; i++)
        mk_conf_reference_print(mk_keys_tables[i], out);
}

/* ---- Plugins ---- */

static void write_plugin_section(struct mk_buf *out, const struct mk_conf_table *table)
{
    mk_buf_add_char(out, '#'); /* one level below the plugin's heading */
    mk_conf_reference_print(table, out);
    if (table->scope == MK_CONF_VHOST)
        mk_buf_add(out, MK_STR("After a [HOST] it applies to that host; before the first one, to all hosts "
                               "without their own.\n\n"));
    else
        mk_buf_add(out, MK_STR("It applies to the whole server, wherever it appears.\n\n"));
}

static void write_plugin_entry(struct mk_buf *out, const struct mk_plugin *p)
{
    bool is_duda = strncmp(p->name, "duda", 4) == 0; /* Duda has a guide instead of a folder in plugins/ */
    mk_buf_addf(out, "## %s\n\n%s\n[How to use it](../../%s%s%s).\n\n", p->name, p->help ? p->help : "",
                is_duda ? "docs/guide/duda" : "plugins/", is_duda ? "" : p->name,
                is_duda ? ".md" : "/README.md");
    for (const struct mk_handler *const *h = p->handlers; h && *h; h++)
        mk_buf_addf(out, "- A handler for [ROUTES]: `%s%s%s`\n", (*h)->name, (*h)->syntax ? " " : "",
                    (*h)->syntax ? (*h)->syntax : "");
    for (const struct mk_command *const *v = p->commands; v && *v; v++)
        mk_buf_addf(out, "- A command: `monkey %s%s%s`. %s\n", (*v)->name, (*v)->args ? " " : "",
                    (*v)->args ? (*v)->args : "", (*v)->help);
    if (p->handlers || p->commands)
        mk_buf_add_char(out, '\n');
    for (const struct mk_conf_table *const *t = p->sections; t && *t; t++)
        write_plugin_section(out, *t);
}

static void write_plugin_reference(struct mk_buf *out)
{
    mk_buf_add(
        out,
        MK_STR(
            "# Plugin sections\n\n<!-- Generated from the tables of the plugins by `make docs`. -->\n\nThe "
            "sections, keys, handlers and commands of the bundled plugins. Load each by its name: `Load "
            "auth` in [PLUGINS]. [Plugins](../guide/using-plugins.md) explains how to use them.\n\n"));
    for (size_t i = 0; i < loaded.n; i++)
        write_plugin_entry(out, loaded.plugins[i]);
}

/* ---- Duda and its packages ---- */

/* tests/docs checks that each example loads. */
static const struct {
    const char *section, *text;
} examples[] = {
    {"DUDA", "    CrashLimit  5\n    CrashBackoff  10s\n"},
    {"SESSIONS", "    Store            cookie\n    IdleTimeout      2h\n    AbsoluteTimeout  7d\n"},
    {"STORE", "    Size  64M\n"},
    {"JOBS", "    Lease    1m\n    RunJobs  off\n"},
    {"KV", "    Name    main\n    Folder  /var/lib/shop\n"},
    {"REDIS", "    Server    127.0.0.1:6379\n    Database  2\n    Timeout   500ms\n"},
    {"MEMCACHED", "    Servers  10.0.0.1:11211 10.0.0.2:11211\n"},
    {"SQLITE", "    File     /var/lib/shop/shop.db\n    Timeout  10s\n"},
    {"POSTGRES", "    Server       host=/run/postgresql dbname=shop user=shop\n    PoolSize     8\n"},
    {"HTTP_CLIENT", "    Name     rates\n    Server   127.0.0.1:8000\n    Timeout  2s\n"},
};

static void write_section_example(struct mk_buf *out, const char *plugin, const char *section)
{
    for (size_t i = 0; i < MK_LEN(examples); i++)
        if (strcmp(examples[i].section, section) == 0)
            mk_buf_addf(out, "```\n[PLUGINS]\n    Load  %s\n\n[%s]\n%s```\n\n", plugin, section,
                        examples[i].text);
}

static void write_duda_package(struct mk_buf *out, const struct mk_plugin *p)
{
    if (!p->sections || strncmp(p->name, "duda", 4) != 0) /* plugins that are not part of Duda */
        return;
    mk_buf_addf(out, "## %s\n\n%s\n\n", p->name, p->help ? p->help : "");
    for (const struct mk_conf_table *const *t = p->sections; *t; t++) {
        mk_buf_add_char(out, '#'); /* one level below the package's heading */
        mk_conf_reference_print(*t, out);
        write_section_example(out, p->name, (*t)->section);
    }
}

static void write_duda_reference(struct mk_buf *out)
{
    mk_buf_add(
        out,
        MK_STR(
            "# Sections of Duda\n\n<!-- Generated from the tables of Duda and its packages by `make docs`. "
            "-->\n\nThe sections and keys of Duda, and of its packages, which a configuration loads by their "
            "names: `Load duda-kv` in [PLUGINS]. The [guide](../guide/duda.md) and the chapter about "
            "[data](../guide/duda-data.md) explain how to use them. All sections are for the whole server. "
            "Services "
            "may have sections of their own: `monkey -T` prints what is in effect.\n\n"));
    for (size_t i = 0; i < loaded.n; i++)
        write_duda_package(out, loaded.plugins[i]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(struct mk_buf *out);
    } outputs[] = {{"man", write_server_man_page},      {"bash", write_bash_completion},
                   {"zsh", write_zsh_completion},       {"reference", write_config_reference},
                   {"plugins", write_plugin_reference}, {"duda", write_duda_reference}};
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    if (argc >= 2 && !load_plugins(argv + 2, argc - 2))
        return 1;
    collect_commands();
    for (size_t i = 0; argc >= 2 && i < MK_LEN(outputs); i++)
        if (strcmp(argv[1], outputs[i].name) == 0)
            outputs[i].write(&out);
    if (argc >= 2 && strncmp(argv[1], "man-", 4) == 0)
        write_command_man_page(argv[1] + 4, &out);
    unload_plugins();
    if (out.failed || out.len == 0) {
        fprintf(stderr, "usage: docgen man | bash | zsh | reference | plugins | duda  FILE...\n");
        return 2;
    }
    fwrite(out.p, 1, out.len, stdout);
    mk_buf_free(&out);
    return 0;
}
