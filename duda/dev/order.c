/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { OPTIONS_MAX = 8 };

static void fill(const struct dev_order *o, char letters[], struct option names[])
{
    for (size_t i = 0; i < o->n_options; i++) {
        const struct dev_option *one = &o->options[i];
        names[i] =
            (struct option){one->name, one->value ? required_argument : no_argument, NULL, one->letter};
        *letters++ = one->letter;
        if (one->value)
            *letters++ = ':';
    }
    names[o->n_options] = (struct option){"help", no_argument, NULL, 'h'};
    names[o->n_options + 1] = (struct option){0};
    *letters++ = 'h';
    *letters = '\0';
}

static bool end(int *code, int with)
{
    *code = with;
    return false;
}

static bool take(const struct dev_order *o, int letter, const char *value, int *code)
{
    for (size_t i = 0; i < o->n_options; i++) {
        const struct dev_option *one = &o->options[i];
        if (one->letter != letter)
            continue;
        if (one->value)
            *one->value = value;
        else
            *one->given = true;
        return true;
    }
    fputs(o->usage, letter == 'h' ? stdout : stderr);
    if (letter == 'h')
        printf("\n%s", o->help);
    return end(code, letter == 'h' ? DEV_FINE : DEV_USAGE);
}

bool dev_order_read(struct dev_order *o, int argc, char **argv, int *code)
{
    char letters[2 * OPTIONS_MAX + 3];
    struct option names[OPTIONS_MAX + 2];
    int letter;
    fill(o, letters, names);
    optind = 0; /* glibc: start again */
    while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1)
        if (!take(o, letter, optarg, code))
            return false;
    o->n_words = argc - optind;
    o->words = argv + optind;
    if (o->n_words >= o->words_min && o->n_words <= o->words_max)
        return true;
    fputs(o->usage, stderr);
    return end(code, DEV_USAGE);
}

int dev_order_complain(int code, const char *command, const char *about, const char *what)
{
    fprintf(stderr, "monkey %s: %s%s%s\n", command, about ? about : "", about ? ": " : "", what);
    return code;
}

void dev_order_write(FILE *to, mk_str text)
{
    if (text.len)
        (void)!fwrite(text.p, 1, text.len, to);
    (void)fflush(to);
}
