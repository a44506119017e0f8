/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command lines of all commands: a few options, and positional arguments. */
#ifndef DUDA_DEV_OPTIONS_H
#define DUDA_DEV_OPTIONS_H

#include <monkey/str.h>
#include <stdbool.h>
#include <stdio.h>

enum { DEV_EXIT_OK = 0, DEV_EXIT_FAILED = 1, DEV_EXIT_USAGE = 2 };

struct dev_option {
    char letter;
    const char *name;
    const char **value; /* receives the argument; NULL: the option has no argument */
    bool *given;        /* set to true for an option without an argument */
};

struct dev_options {
    const char *usage, *help; /* usage: lines `usage: monkey ...`; help: further text for --help */
    const struct dev_option *options;
    size_t n_options;
    int args_min, args_max;
    int n_args; /* result: number of positional arguments */
    char **args;
};

/* Returns true if the command should continue. Otherwise the command must exit with *code; the reason has
 * been printed. */
bool dev_options_parse(struct dev_options *o, int argc, char **argv, int *code);
/* Writes the whole text to the stream with one flush. */
void dev_print_text(FILE *to, mk_str text);
/* Prints "monkey COMMAND: ABOUT: PROBLEM" to standard error, and returns `code`. */
int dev_print_error(int code, const char *command, const char *about, const char *problem);

#endif
