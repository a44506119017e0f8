/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as one table: parsing, help, man page and shell completion all come from it. */
#ifndef MK_CLI_OPTIONS_H
#define MK_CLI_OPTIONS_H

#include "base/buf.h"

/* What an option's argument is, for completion. */
enum mk_option_arg { MK_ARG_NONE, MK_ARG_FILE, MK_ARG_FOLDER, MK_ARG_WORD };

struct mk_option {
    char letter; /* also what the parser answers; below a space: it has only its name */
    const char *name;
    enum mk_option_arg arg;
    const char *arg_name;
    const char *help; /* one sentence */
};

static inline bool mk_option_has_letter(const struct mk_option *o)
{
    return o->letter > ' ';
}

extern const struct mk_option mk_options[];
extern const size_t mk_options_n;

/* A word in the place of the folder. */
struct mk_cli_command {
    const char *name, *args, *help;
    int n_args;
};

extern const struct mk_cli_command mk_options_commands[];
extern const size_t mk_options_commands_n;

const struct mk_cli_command *mk_options_find_command(const char *word);

enum { MK_OPTIONS_LISTENS_MAX = 16 };

/* What the command line said. Texts are argv's. */
struct mk_arguments {
    const char *config, *folder, *pid_file;
    const char *root;                                /* the folder of -o beside -c */
    const char *listens[MK_OPTIONS_LISTENS_MAX + 1]; /* NULL-terminated */
    size_t n_listens;
    unsigned workers;
    bool test, print, daemon, open_to_all, https, version, build, help;
    bool one_shot; /* the folder is that of -o */
    const struct mk_cli_command *verb;
    char **words; /* the words after the options, NULL-terminated */
    int n_words;
};

/* The first word that is neither an option nor the argument of one; NULL if there is none. */
const char *mk_options_first_operand(int argc, char **argv);
/* False: invalid, and the reason was printed on standard error. */
bool mk_options_parse(int argc, char **argv, struct mk_arguments *out) MK_MUST_USE;

/* `add_commands` adds what plugins bring, with mk_options_write_command(). */
void mk_options_write_help(struct mk_buf *out, void (*add_commands)(struct mk_buf *out));
void mk_options_write_command(struct mk_buf *out, const char *name, const char *args, const char *help);

#endif
