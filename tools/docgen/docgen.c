/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what people and shells read about the program, out of the tables that the program itself runs on:
 *
 *     docgen man | bash | zsh | reference
 */
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "conf/reference.h"
#include "server/settings.h"

enum { TEXT_MAX = 1024 * 1024, WITHOUT_LETTER = 'P' };

static bool has_letter(const struct mk_option *o)
{
    return o->letter != WITHOUT_LETTER;
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
    if (has_letter(o))
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
    "Named a folder, monkey serves its files on http://127.0.0.1:2001/, to this machine alone unless "
    "\\fB\\-\\-public\\fR or an\n"
    "address says otherwise. Given a configuration, it serves the hosts in it. Without either it looks "
    "for\n" MK_SYSCONFDIR "/monkey. It prints the URLs, and runs until it is told to end.\n";

static const char man_tail[] =
    ".SH SIGNALS\nTo be sent to the master process.\n"
    ".TP\n.B HUP\nLoad the configuration again. New workers serve it, the old ones finish what they have "
    "begun. One with\n"
    "mistakes is not taken: they are logged, and the old one stays.\n"
    ".TP\n.B USR1\nOpen the logs anew, after they were renamed.\n"
    ".TP\n.B USR2\nStart the program anew, for an upgrade; the old one ends when the new one serves.\n"
    ".TP\n.B QUIT\nEnd when everything that was begun is done.\n"
    ".TP\n.B TERM, INT\nEnd now.\n"
    ".SH EXIT STATUS\n.TP\n.B 0\nfine\n.TP\n.B 1\nfailed at run time\n.TP\n.B 2\nwrong use of the command "
    "line\n"
    ".TP\n.B 3\na mistake in the configuration\n"
    ".SH ENVIRONMENT\n.TP\n.B LISTEN_FDS, LISTEN_PID\nSockets of a service manager, used for every "
    "\\fBListen\\fR of the\n"
    "same address.\n.TP\n.B NOTIFY_SOCKET\nWhere the service manager is told of readiness, reloads and the "
    "end.\n"
    ".SH FILES\n.TP\n.I " MK_SYSCONFDIR
    "/monkey/monkey.conf\nThe configuration, with its hosts in \\fIsites/\\fR.\n";

static void write_man(struct mk_buf *out)
{
    mk_buf_add(out, mk_str_from_c(man_head));
    for (size_t i = 0; i < mk_commands_n; i++) {
        mk_buf_addf(out, ".br\n.B monkey\n[\\fIOPTIONS\\fR] \\fB%s\\fR \\fI%s\\fR\n", mk_commands[i].name,
                    mk_commands[i].args);
    }
    mk_buf_add(out, mk_str_from_c(man_body));
    mk_buf_add(out, MK_STR(".SH OPTIONS\n"));
    for (size_t i = 0; i < mk_options_n; i++)
        man_option(out, &mk_options[i]);
    mk_buf_add(out, MK_STR(".SH COMMANDS\n"));
    for (size_t i = 0; i < mk_commands_n; i++) {
        mk_buf_addf(out, ".TP\n\\fB%s\\fR \\fI%s\\fR\n", mk_commands[i].name, mk_commands[i].args);
        man_text(out, mk_commands[i].help);
        mk_buf_add_char(out, '\n');
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
        if (has_letter(o))
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
        if (has_letter(&mk_options[i]))
            mk_buf_addf(out, "-%c\\n", mk_options[i].letter);
        mk_buf_addf(out, "--%s\\n", mk_options[i].name);
    }
    mk_buf_add(out, MK_STR("' -- \"$cur\"))\n        return\n    fi\n    compopt -o filenames\n    "
                           "COMPREPLY=($(compgen -W $'"));
    for (size_t i = 0; i < mk_commands_n; i++)
        mk_buf_addf(out, "%s\\n", mk_commands[i].name);
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
    if (has_letter(o))
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
    for (size_t i = 0; i < mk_commands_n; i++)
        mk_buf_addf(out, i ? " %s" : "%s", mk_commands[i].name);
    mk_buf_add(out, MK_STR(")\"' \\\n    '*: :'\n"));
}

/* ---- Configuration ---- */

static void write_reference(struct mk_buf *out)
{
    mk_buf_add(
        out,
        MK_STR(
            "# Configuration reference\n\n<!-- Made from the tables in src/server/settings.c by `make docs`. "
            "-->\n\n"
            "How a configuration is written is told in [configuration-format.md](configuration-format.md). "
            "`monkey -t` checks one, `monkey -T` prints what is in effect, defaults included.\n\n"
            "A folder is loaded from its `monkey.conf`. If nothing in it is a [HOST], the files in `sites/` "
            "beside it are read, `default` first; `monkey.mime` and `plugins.load` are read if they are "
            "there.\n\n"));
    for (size_t i = 0; i < MK_SECTIONS; i++)
        mk_conf_reference_print(mk_settings_tables[i], out);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(struct mk_buf *out);
    } outputs[] = {
        {"man", write_man}, {"bash", write_bash}, {"zsh", write_zsh}, {"reference", write_reference}};
    struct mk_buf out = mk_buf_growing(TEXT_MAX);
    for (size_t i = 0; argc == 2 && i < MK_LEN(outputs); i++)
        if (strcmp(argv[1], outputs[i].name) == 0)
            outputs[i].write(&out);
    if (out.failed || out.len == 0) {
        fprintf(stderr, "usage: docgen man | bash | zsh | reference\n");
        return 2;
    }
    fwrite(out.p, 1, out.len, stdout);
    mk_buf_free(&out);
    return 0;
}
