/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>

#include "base/num.h"

enum { PUBLIC = 1, HTTPS = 2, COLUMN = 34 };

const struct mk_option mk_options[] = {
    {'p', "port", MK_ARG_WORD, "[ADDRESS:]PORT",
     "Listen there, in place of what is configured; may be repeated."},
    {PUBLIC, "public", MK_ARG_NONE, NULL, "Serve a folder to other machines too, not to this one alone."},
    {HTTPS, "https", MK_ARG_NONE, NULL,
     "Serve a folder by https, certified by an authority of this machine alone."},
    {'w', "workers", MK_ARG_WORD, "N", "Run N worker processes."},
    {'c', "config", MK_ARG_FILE, "FILE|FOLDER",
     "Serve a configuration: a file, or a folder with a monkey.conf."},
    {'t', "test", MK_ARG_NONE, NULL, "Check the configuration and exit."},
    {'T', "print", MK_ARG_NONE, NULL, "Print the effective configuration and exit."},
    {'D', "daemon", MK_ARG_NONE, NULL, "Go into the background once requests are served."},
    {'I', "pid-file", MK_ARG_FILE, "FILE", "Keep the number of the master process in FILE."},
    {'o', "one-shot", MK_ARG_FOLDER, "DIR", "Serve a folder; the same as naming it alone."},
    {'v', "version", MK_ARG_NONE, NULL, "Print the version and exit."},
    {'V', "build", MK_ARG_NONE, NULL,
     "Print how this program was built and what this system offers, and exit."},
    {'h', "help", MK_ARG_NONE, NULL, "Print this and exit."},
};
const size_t mk_options_n = MK_LEN(mk_options);

const struct mk_command mk_commands[] = {
    {"explain", "METHOD URL",
     "Say what would answer a request, and why: listener, host, route, file, response.", 2},
    {"plugins", "",
     "List the plugins that are there, or those of a configuration, with their hooks in order.", 0},
    {"authority", "",
     "Say how browsers come to trust what --https serves; makes the authority if there is none.", 0},
};
const size_t mk_commands_n = MK_LEN(mk_commands);

static void fill_getopt(char letters[], struct option names[])
{
    *letters++ = ':'; /* a missing argument is told from an unknown option */
    for (size_t i = 0; i < mk_options_n; i++) {
        const struct mk_option *o = &mk_options[i];
        names[i] = (struct option){o->name, o->arg == MK_ARG_NONE ? no_argument : required_argument, NULL,
                                   o->letter};
        if (!mk_option_has_letter(o))
            continue;
        *letters++ = o->letter;
        if (o->arg != MK_ARG_NONE)
            *letters++ = ':';
    }
    *letters = '\0';
    names[mk_options_n] = (struct option){0};
}

static bool complain(const char *what, const char *word)
{
    fprintf(stderr, "monkey: %s%s\nTry `monkey --help`.\n", what, word);
    return false;
}

static bool take_workers(struct mk_arguments *a, const char *text)
{
    uint64_t n;
    if (!mk_num_parse(mk_str_from_c(text), &n) || n < 1 || n > 512)
        return complain("-w expects a number from 1 to 512, not ", text);
    a->workers = (unsigned)n;
    return true;
}

static bool take_folder(struct mk_arguments *a, const char *path)
{
    if (a->folder)
        return complain("one folder at a time, not also ", path);
    a->folder = path;
    return true;
}

static bool take_option(struct mk_arguments *a, int letter, const char *arg)
{
    switch (letter) {
    case 'p':
        if (a->n_listens == MK_OPTIONS_LISTENS_MAX)
            return complain("too many -p: ", arg);
        a->listens[a->n_listens++] = arg;
        break;
    case 'w':
        return take_workers(a, arg);
    case 'o':
        return take_folder(a, arg);
    case 'c':
        a->config = arg;
        break;
    case 'I':
        a->pid_file = arg;
        break;
    case PUBLIC:
        a->open_to_all = true;
        break;
    case HTTPS:
        a->https = true;
        break;
    case 't':
        a->test = true;
        break;
    case 'T':
        a->print = true;
        break;
    case 'D':
        a->daemon = true;
        break;
    case 'v':
        a->version = true;
        break;
    case 'V':
        a->build = true;
        break;
    default:
        a->help = true;
        break;
    }
    return true;
}

const struct mk_command *mk_options_find_command(const char *word)
{
    for (size_t i = 0; i < mk_commands_n; i++)
        if (strcmp(word, mk_commands[i].name) == 0)
            return &mk_commands[i];
    return NULL;
}

static bool take_words(struct mk_arguments *a, int argc, char **argv)
{
    if (argc == 0)
        return true;
    a->verb = mk_options_find_command(argv[0]);
    if (a->verb) {
        a->words = argv + 1;
        a->n_words = argc - 1;
        return true;
    }
    for (int i = 0; i < argc; i++)
        if (!take_folder(a, argv[i]))
            return false;
    return true;
}

bool mk_options_parse(int argc, char **argv, struct mk_arguments *out)
{
    char letters[2 * MK_LEN(mk_options) + 2];
    struct option names[MK_LEN(mk_options) + 1];
    int letter;
    *out = (struct mk_arguments){0};
    fill_getopt(letters, names);
    opterr = 0;
    while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        if (letter == ':')
            return complain("this option needs an argument: ", argv[optind - 1]);
        if (letter == '?')
            return complain("there is no such option: ", argv[optind - 1]);
        if (!take_option(out, letter, optarg))
            return false;
    }
    if (!take_words(out, argc - optind, argv + optind))
        return false;
    if (out->folder && out->config)
        return complain("serve a folder or a configuration, not both: ", out->folder);
    if (out->https && !out->folder)
        return complain("--https is for serving a folder; ", "a configuration says `Listen PORT tls`");
    return true;
}

static void write_row(struct mk_buf *out, const char *left, size_t len, const char *help)
{
    mk_buf_addf(out, "  %s%*s%s\n", left, (int)(len < COLUMN ? COLUMN - len : 1), "", help);
}

void mk_options_write_help(struct mk_buf *out)
{
    char left[80];
    mk_buf_add(out, MK_STR("Monkey " MK_VERSION ", a small and fast HTTP server.\n\n"
                           "  monkey DIR                  serve a folder on http://127.0.0.1:2001/\n"
                           "  monkey -c FILE|FOLDER       serve a configuration\n"));
    for (size_t i = 0; i < mk_commands_n; i++)
        mk_buf_addf(out, "  monkey %s %s   %s\n", mk_commands[i].name, mk_commands[i].args,
                    mk_commands[i].help);
    mk_buf_add(out, MK_STR("\nOptions:\n"));
    for (size_t i = 0; i < mk_options_n; i++) {
        const struct mk_option *o = &mk_options[i];
        char letter[] = {'-', o->letter, ',', '\0'};
        int len = snprintf(left, sizeof left, "%s --%s%s%s", mk_option_has_letter(o) ? letter : "   ",
                           o->name, o->arg_name ? " " : "", o->arg_name ? o->arg_name : "");
        write_row(out, left, len > 0 ? (size_t)len : 0, o->help);
    }
    mk_buf_add(out, MK_STR("\nSignals to the master: HUP reloads, USR1 opens logs anew, USR2 starts a new "
                           "program, QUIT ends\n"
                           "when all requests are answered, TERM ends.\n"));
}
