/* SPDX-License-Identifier: Apache-2.0 */
#include "server/options.h"

#include <getopt.h>
#include <stdio.h>

#include "base/num.h"
#include "server/certificates_command.h"
#include "server/config_commands.h"
#include "server/explain.h"

enum { PUBLIC = 1, HTTPS = 2, COLUMN = 34 };

const struct mk_option mk_options[] = {
    {'p', "port", MK_ARG_WORD, "[ADDRESS:]PORT",
     "Listen on this address instead of the configured ones; may be repeated."},
    {PUBLIC, "public", MK_ARG_NONE, NULL, "Serve a folder to other machines as well, not only to this one."},
#if MK_HAS_TLS
    {HTTPS, "https", MK_ARG_NONE, NULL,
     "Serve a folder over HTTPS, with a certificate from a private CA of this machine."},
#endif
    {'w', "workers", MK_ARG_WORD, "N", "Run N worker processes."},
    {'c', "config", MK_ARG_FILE, "FILE|FOLDER",
     "Serve a configuration: a file, or a folder with a monkey.conf."},
    {'t', "test", MK_ARG_NONE, NULL, "Check the configuration and exit."},
#if MK_HAS_EXPLAIN
    {'T', "print", MK_ARG_NONE, NULL, "Print the effective configuration and exit."},
#endif
    {'D', "daemon", MK_ARG_NONE, NULL, "Run in the background; return when the server is ready."},
    {'I', "pid-file", MK_ARG_FILE, "FILE", "Write the process ID of the master to FILE."},
    {'o', "one-shot", MK_ARG_FOLDER, "DIR",
     "Serve a folder; with -c, it is the DocumentRoot of hosts without one."},
    {'v', "version", MK_ARG_NONE, NULL, "Print the version and exit."},
    {'V', "build", MK_ARG_NONE, NULL, "Print build options and features of this system, and exit."},
    {'h', "help", MK_ARG_NONE, NULL, "Print this help and exit."},
};
const size_t mk_options_n = MK_LEN(mk_options);

const struct mk_cli_command mk_options_commands[] = {
#if MK_HAS_EXPLAIN
    {"explain", "METHOD URL",
     "Explain how the server handles a request: listener, host, route, file, response.", 2},
    {"plugins", "", "List the available plugins, or those of a configuration in their order.", 0},
#endif
#if MK_HAS_CONFIG_HISTORY
    {"diff", "[NUMBER]", "Show what a reload would change, or what has changed since configuration NUMBER.",
     MK_CLI_OPTIONAL},
    {"configurations", "", "List the last ten configurations: number, time, who, outcome.", 0},
#endif
#if MK_HAS_CERTIFICATES
    {"certificates", "[--json] [--days N]",
     "List the certificates by expiry. Exit code 1: at least one needs attention.", 0},
#endif
    {"help", "[COMMAND]", "Print this help, or that of a command.", 0},
#if MK_HAS_TLS
    {"ca", "", "Show how to make browsers trust the CA of --https; create it if it does not exist.", 0},
#endif
};
const size_t mk_options_commands_n = MK_LEN(mk_options_commands);

/* The commands and options that this build lacks, and the build options that they need. */
static const struct {
    const char *word, *build_option;
} absent_words[] = {
#if !MK_HAS_EXPLAIN
    {"explain", "MK_EXPLAIN"},
    {"plugins", "MK_EXPLAIN"},
    {"-T", "MK_EXPLAIN"},
    {"--print", "MK_EXPLAIN"},
#endif
#if !MK_HAS_CONFIG_HISTORY
    {"diff", "MK_CONFIG_HISTORY"},
    {"configurations", "MK_CONFIG_HISTORY"},
#endif
#if !MK_HAS_CERTIFICATES
    {"certificates", "MK_CERTIFICATES"},
#endif
#if !MK_HAS_TLS
    {"ca", "MK_TLS"},
    {"--https", "MK_TLS"},
#endif
    {NULL, NULL},
};

/* Reports a command or option that this build lacks, and returns true. */
static bool report_absent(const char *word)
{
    size_t i = 0;
    while (absent_words[i].word && strcmp(word, absent_words[i].word) != 0)
        i++;
    if (absent_words[i].word)
        fprintf(stderr, "monkey: this server was built without `monkey %s` (%s)\n", word,
                absent_words[i].build_option);
    return absent_words[i].word;
}

static void build_getopt_tables(char letters[], struct option names[])
{
    *letters++ = ':'; /* distinguishes a missing argument from an unknown option */
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

char *mk_options_first_operand(int argc, char **argv)
{
    char letters[2 * MK_LEN(mk_options) + 3] = "+"; /* `+`: otherwise getopt would also parse the options
                                                     * after the first operand */
    struct option names[MK_LEN(mk_options) + 1];
    int letter;
    build_getopt_tables(letters + 1, names);
    opterr = 0;
    do
        letter = getopt_long(argc, argv, letters, names, NULL);
    while (letter != -1 && letter != '?' && letter != ':');
    char *word = letter == -1 && optind < argc ? argv[optind] : NULL;
    optind = 0; /* restarts getopt */
    return word;
}

static bool usage_error(const char *what, const char *word)
{
    fprintf(stderr, "monkey: %s%s\nTry `monkey --help`.\n", what, word);
    return false;
}

static bool parse_workers(struct mk_arguments *a, const char *text)
{
    uint64_t n;
    if (!mk_num_parse(mk_str_from_c(text), &n) || n < 1 || n > 512)
        return usage_error("-w expects a number from 1 to 512, not ", text);
    a->workers = (unsigned)n;
    return true;
}

static bool set_folder(struct mk_arguments *a, const char *path)
{
    if (a->folder)
        return usage_error("expected one folder only, not also ", path);
    a->folder = path;
    return true;
}

static bool parse_option(struct mk_arguments *a, int letter, const char *arg)
{
    switch (letter) {
    case 'p':
        if (a->n_listens == MK_OPTIONS_LISTENS_MAX)
            return usage_error("too many -p: ", arg);
        a->listens[a->n_listens++] = arg;
        break;
    case 'w':
        return parse_workers(a, arg);
    case 'o':
        a->one_shot = true;
        return set_folder(a, arg);
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

const struct mk_cli_command *mk_options_find_command(const char *word)
{
    for (size_t i = 0; i < mk_options_commands_n; i++)
        if (strcmp(word, mk_options_commands[i].name) == 0)
            return &mk_options_commands[i];
    return NULL;
}

static bool parse_operands(struct mk_arguments *a, int argc, char **argv)
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
        if (!set_folder(a, argv[i]))
            return false;
    return true;
}

/* Is there an option to serve, check or print, which is invalid with a command? */
static bool has_serve_option(const struct mk_arguments *a)
{
    return a->test || a->print || a->daemon || a->pid_file;
}

bool mk_options_parse(int argc, char **argv, struct mk_arguments *out)
{
    char letters[2 * MK_LEN(mk_options) + 2];
    struct option names[MK_LEN(mk_options) + 1];
    int letter;
    *out = (struct mk_arguments){0};
    const char *operand = mk_options_first_operand(argc, argv);
    if (operand && report_absent(operand))
        return false;
    build_getopt_tables(letters, names);
    opterr = 0;
    while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        if (letter == ':')
            return usage_error("this option needs an argument: ", argv[optind - 1]);
        if (letter == '?')
            return !report_absent(argv[optind - 1]) && usage_error("unknown option: ", argv[optind - 1]);
        if (!parse_option(out, letter, optarg))
            return false;
    }
    if (!parse_operands(out, argc - optind, argv + optind))
        return false;
    if (out->verb && has_serve_option(out))
        return usage_error("-t, -T, -D and -I are not valid with the command ", out->verb->name);
    if (out->config && out->one_shot) {
        out->root = out->folder;
        out->folder = NULL;
    }
    if (out->folder && out->config)
        return usage_error("serve a folder or a configuration, not both: ", out->folder);
    if (out->https && !out->folder)
        return usage_error("--https is for serving a folder; ", "a configuration says `Listen PORT tls`");
    return true;
}

static void write_help_row(struct mk_buf *out, const char *left, size_t len, const char *help)
{
    if (len < COLUMN)
        mk_buf_addf(out, "  %s%*s%s\n", left, (int)(COLUMN - len), "", help);
    else
        mk_buf_addf(out, "  %s\n  %*s%s\n", left, COLUMN, "", help);
}

void mk_options_write_command(struct mk_buf *out, const char *name, const char *args, const char *help)
{
    char left[80];
    int len = snprintf(left, sizeof left, "monkey %s%s%s", name, args && *args ? " " : "", args ? args : "");
    write_help_row(out, left, len > 0 ? (size_t)len : 0, help);
}

static void write_option_row(struct mk_buf *out, const struct mk_option *o)
{
    char left[80], letter[] = {'-', o->letter, ',', '\0'};
    int len = snprintf(left, sizeof left, "%s --%s%s%s", mk_option_has_letter(o) ? letter : "   ", o->name,
                       o->arg_name ? " " : "", o->arg_name ? o->arg_name : "");
    write_help_row(out, left, len > 0 ? (size_t)len : 0, o->help);
}

static void write_option_rows(struct mk_buf *out, const char *title, const struct mk_option *options,
                              size_t n)
{
    if (n)
        mk_buf_addf(out, "\n%s:\n", title);
    for (size_t i = 0; i < n; i++)
        write_option_row(out, &options[i]);
}

void mk_options_write_command_help(struct mk_buf *out, const struct mk_cli_command *c)
{
    size_t n = 0;
    const struct mk_option *options = NULL;
    if (strcmp(c->name, "explain") == 0)
        options = mk_explain_options(&n);
    else if (strcmp(c->name, "certificates") == 0)
        options = mk_certificates_command_options(&n);
    mk_options_write_command(out, c->name, c->args, c->help);
    write_option_rows(out, "Options", options, n);
    mk_buf_add(out, mk_config_commands_help(c->name));
}

void mk_options_write_help(struct mk_buf *out, void (*add_commands)(struct mk_buf *out))
{
    mk_buf_add(out, MK_STR("Monkey " MK_VERSION ", a small and fast HTTP server.\n\n"));
    mk_options_write_command(out, "DIR", NULL,
                             "Serve a folder on http://127.0.0.1:2001/; `./run` if its name is a command.");
    mk_options_write_command(out, "-c FILE|FOLDER", NULL, "Serve a configuration.");
    for (size_t i = 0; i < mk_options_commands_n; i++)
        mk_options_write_command(out, mk_options_commands[i].name, mk_options_commands[i].args,
                                 mk_options_commands[i].help);
    add_commands(out);
    write_option_rows(out, "Options", mk_options, mk_options_n);
    size_t n;
    const struct mk_option *explain = mk_explain_options(&n);
    write_option_rows(out, "Options of `explain`", explain, n);
    const struct mk_option *certificates = mk_certificates_command_options(&n);
    write_option_rows(out, "Options of `certificates`", certificates, n);
    mk_buf_add(
        out,
        MK_STR("\nSignals to the master: HUP reloads the configuration, USR1 reopens logs, USR2 upgrades the "
               "program,\nQUIT exits when all requests are finished, TERM exits at once.\n"));
}
