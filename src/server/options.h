/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as one table: parsing, help, man page and shell completion all come from it. */
#ifndef MK_SERVER_OPTIONS_H
#define MK_SERVER_OPTIONS_H

#include "base/buf.h"
#include "server/command_line.h"

extern const struct mk_option mk_options[];
extern const size_t mk_options_n;

/* A command: the first argument, in place of a folder. */
struct mk_cli_command {
    const char *name, *args, *help;
    int n_args; /* MK_CLI_OPTIONAL: none or one */
};

enum { MK_CLI_OPTIONAL = -1 };

extern const struct mk_cli_command mk_options_commands[];
extern const size_t mk_options_commands_n;

const struct mk_cli_command *mk_options_find_command(const char *word);

enum { MK_OPTIONS_LISTENS_MAX = 16 };

/* Parsed command line. Strings point into argv. */
struct mk_arguments {
    const char *config, *folder, *pid_file;
    const char *root;                                /* folder of -o combined with -c */
    const char *listens[MK_OPTIONS_LISTENS_MAX + 1]; /* NULL-terminated */
    size_t n_listens;
    unsigned workers;
    bool test, print, daemon, open_to_all, https, version, build, help;
    bool one_shot; /* the folder was given with -o */
    const struct mk_cli_command *verb;
    struct mk_explain_request explained;      /* options of `explain` */
    struct mk_certificates_options inventory; /* options of `certificates` */
    char **words;                             /* arguments after the options, NULL-terminated */
    int n_words;
};

/* Returns the first argument that is neither an option nor an option's argument; NULL: none. */
char *mk_options_first_operand(int argc, char **argv);
/* Parses the command line. False: it is invalid, and the reason was printed on standard error. */
bool mk_options_parse(int argc, char **argv, struct mk_arguments *out) MK_MUST_USE;

/* Writes the help. `add_commands` appends plugin commands with mk_options_write_command(). */
void mk_options_write_help(struct mk_buf *out, void (*add_commands)(struct mk_buf *out));
void mk_options_write_command(struct mk_buf *out, const char *name, const char *args, const char *help);
/* Writes the help of a command of the program. */
void mk_options_write_command_help(struct mk_buf *out, const struct mk_cli_command *c);

#endif
