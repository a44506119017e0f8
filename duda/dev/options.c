/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { OPTIONS_MAX = 8 };

static void build_getopt_tables(const struct dev_options *o, char letters[], struct option names[])
{
    for (size_t i = 0; i < o->n_options; i++) {
        const struct dev_option *option_spec = &o->options[i];
        names[i] = (struct option){option_spec->name, option_spec->value ? required_argument : no_argument,
                                   NULL, option_spec->letter};
        *letters++ = option_spec->letter;
        if (option_spec->value)
            *letters++ = ':';
    }
    names[o->n_options] = (struct option){"help", no_argument, NULL, 'h'};
    names[o->n_options + 1] = (struct option){0};
    *letters++ = 'h';
    *letters = '\0';
}

static bool exit_with_code(int *code, int with)
{
    *code = with;
    return false;
}

static bool apply_option(const struct dev_options *o, int letter, const char *value, int *code)
{
    for (size_t i = 0; i < o->n_options; i++) {
        const struct dev_option *option_spec = &o->options[i];
        if (option_spec->letter != letter)
            continue;
        if (option_spec->value)
            *option_spec->value = value;
        else
            *option_spec->given = true;
        return true;
    }
    fputs(o->usage, letter == 'h' ? stdout : stderr);
    if (letter == 'h')
        printf("\n%s", o->help);
    return exit_with_code(code, letter == 'h' ? DEV_EXIT_OK : DEV_EXIT_USAGE);
}

bool dev_options_parse(struct dev_options *o, int argc, char **argv, int *code)
{
    char letters[2 * OPTIONS_MAX + 3];
    struct option names[OPTIONS_MAX + 2];
    int letter;
    build_getopt_tables(o, letters, names);
    optind = 0; /* resets getopt in glibc */
    while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1)
        if (!apply_option(o, letter, optarg, code))
            return false;
    o->n_args = argc - optind;
    o->args = argv + optind;
    if (o->n_args >= o->args_min && o->n_args <= o->args_max)
        return true;
    fputs(o->usage, stderr);
    return exit_with_code(code, DEV_EXIT_USAGE);
}

int dev_print_error(int code, const char *command, const char *about, const char *problem)
{
    fprintf(stderr, "monkey %s: %s%s%s\n", command, about ? about : "", about ? ": " : "", problem);
    return code;
}

void dev_print_text(FILE *to, mk_str text)
{
    if (text.len)
        (void)!fwrite(text.p, 1, text.len, to);
    (void)fflush(to);
}
