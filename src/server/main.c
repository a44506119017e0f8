/* SPDX-License-Identifier: Apache-2.0 */
/* The program: executes the command line. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/print.h"
#include "conf/words.h"
#include "os/fd.h"
#include "server/build_info.h"
#include "server/certificates_command.h"
#include "server/cli_plugins.h"
#include "server/config_commands.h"
#include "server/explain.h"
#include "server/explain_sandbox.h"
#include "server/https.h"
#include "server/master.h"
#include "server/options.h"
#include "server/plugin_list.h"
#include "server/report_output.h"
#include "server/urls.h"
#include "setup/config_reader.h"
#include "web/static.h"

enum { TEXT_MAX = 1024 * 1024 };

#define DEFAULT_CONFIG MK_SYSCONFDIR "/monkey"

static int print_out_of_memory(void)
{
    fputs("monkey: out of memory\n", stderr);
    return MK_EXIT_FAILED;
}

static int print_and_free_text(struct mk_buf *text)
{
    if (text->failed) {
        mk_buf_free(text);
        return print_out_of_memory();
    }
    bool ok = fwrite(mk_buf_str(text).p, 1, text->len, stdout) == text->len && fflush(stdout) == 0;
    mk_buf_free(text);
    return ok ? MK_EXIT_OK : MK_EXIT_FAILED;
}

/* ---- A folder as a configuration ---- */

static bool folder_has_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    return len > 0 && len < PATH_MAX && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void write_folder_config(struct mk_buf *out, const char *folder, const struct mk_https *https)
{
    struct mk_buf quoted = mk_buf_growing(2 * PATH_MAX);
    mk_conf_words_quote_text(&quoted, mk_str_from_c(folder));
    mk_buf_addf(out, "[SERVER]\n    LogLevel warn\n    AccessLogFormat short\n    AccessLog %s\n",
                isatty(STDOUT_FILENO) ? "stdout" : "off");
    mk_buf_add(out, MK_STR("[HOST]\n"));
    mk_conf_print_entry(MK_STR("DocumentRoot"), mk_buf_str(&quoted), out);
    if (https)
        mk_https_write_config(https, out);
    if (folder_has_file(folder, "404.html"))
        mk_buf_add(out, MK_STR("[ERROR_PAGES]\n    404 404.html\n"));
    if (quoted.failed)
        out->failed = true;
    mk_buf_free(&quoted);
    if (mk_cli_plugins_can_load("dirlisting")) /* a folder without an index file is then served as a
                                                * listing */
        mk_buf_add(out, MK_STR("[PLUGINS]\n    Load dirlisting\n[DIRLISTING]\n    Listing on\n"));
}

/* Makes the path absolute, so that it stays valid when the working directory changes. */
static const char *absolute_path(const char *path, char buf[PATH_MAX])
{
    char here[PATH_MAX];
    if (!path || path[0] == '/' || !getcwd(here, sizeof here))
        return path;
    int len = snprintf(buf, PATH_MAX, "%s/%s", here, path);
    return len > 0 && len < PATH_MAX ? buf : path;
}

/* Reports an argument that is neither a folder nor a command. */
static void report_unknown_word(const char *word, int error)
{
    char buf[MK_CLI_PLUGINS_COMMAND_MAX];
    bool is_path = error != ENOENT || strchr(word, '/');
    struct mk_conf_suggest near = mk_conf_suggest_for(mk_str_from_c(word));
    for (size_t i = 0; i < mk_options_commands_n; i++)
        mk_conf_suggest_try(&near, mk_str_from_c(mk_options_commands[i].name));
    mk_cli_plugins_suggest_command(&near, buf);
    if (is_path)
        fprintf(stderr, "monkey: cannot serve the folder `%s`: %s\n", word, strerror(error));
    else
        fprintf(stderr, "monkey: there is no folder and no command `%s`\n", word);
    if (!is_path && near.best.p)
        fprintf(stderr, "Did you mean `monkey %.*s`?\n", MK_STR_ARG(near.best));
    else
        fprintf(stderr, "Name an existing folder (`monkey .`), or try `monkey --help`.\n");
}

static void report_file_not_folder(const char *file)
{
    mk_str name = mk_str_from_c(file);
    size_t slash = mk_str_find_last(name, '/');
    mk_str folder = slash == MK_STR_NONE ? MK_STR(".") : mk_str_first(name, slash ? slash : 1);
    fprintf(stderr, "monkey: `%s` is a file, but a folder is expected\n", file);
    fprintf(
        stderr,
        "Serve its folder (`monkey %.*s`), or, if it is a configuration, name it with -c (`monkey -c %s`).\n",
        MK_STR_ARG(folder), file);
}

/* Finds the configuration or the folder to serve. False: there is nothing to serve, and the reason was
 * printed. */
static bool find_config_origin(const struct mk_arguments *a, const struct mk_https *https,
                               struct mk_config_source *origin, struct mk_buf *text)
{
    static char folder[PATH_MAX], config[PATH_MAX], pid_file[PATH_MAX], root[PATH_MAX];
    struct stat st;
    *origin = (struct mk_config_source){.reader = &mk_config_reader,
                                        .path = absolute_path(a->config, config),
                                        .overrides = {.listens = a->n_listens ? a->listens : NULL,
                                                      .listen_host = MK_STR("0.0.0.0"),
                                                      .workers = a->workers,
                                                      .pid_file = absolute_path(a->pid_file, pid_file),
                                                      .root = absolute_path(a->root, root)}};
    if (!a->config && !a->folder && access(DEFAULT_CONFIG, R_OK) == 0)
        origin->path = DEFAULT_CONFIG;
    if (origin->path)
        return true;
    if (!a->folder && a->verb) {
        fprintf(stderr, "monkey: `%s` needs a configuration: write `monkey -c FILE %s`\n", a->verb->name,
                a->verb->name);
        return false;
    }
    if (!a->folder) {
        fprintf(stderr, "monkey: nothing to serve. Name a folder (`monkey .`) or a configuration (`monkey -c "
                        "monkey.conf`).\nTry `monkey --help`.\n");
        return false;
    }
    if (!realpath(a->folder, folder)) {
        report_unknown_word(a->folder, errno);
        return false;
    }
    if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode)) {
        report_file_not_folder(a->folder);
        return false;
    }
    write_folder_config(text, folder, https);
    origin->text = mk_buf_str(text);
    if (https)
        origin->overrides.listens = https->listens;
    if (!a->open_to_all)
        origin->overrides.listen_host = MK_STR("127.0.0.1");
    return !text->failed;
}

/* ---- Commands that inspect a configuration ---- */

/* Loads the configuration. NULL: the error was printed, and *code is the exit code. */
static struct mk_config_generation *load_config(const struct mk_config_source *origin, int *code)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    mk_arena_init(&arena, NULL);
    struct mk_config_generation *g = mk_config_generation_load(origin, &arena, &report);
    mk_report_output_print(&report);
    *code = g ? MK_EXIT_OK : mk_conf_report_out_of_memory(&report) ? MK_EXIT_FAILED : MK_EXIT_CONFIGURATION;
    mk_arena_fini(&arena);
    return g;
}

static int test_config(const struct mk_config_source *origin)
{
    int code;
    struct mk_config_generation *g = load_config(origin, &code);
    if (!g)
        return code;
    printf("The configuration is valid: %zu host%s, %zu address%s.\n", g->n_sites, g->n_sites == 1 ? "" : "s",
           g->listens.n, g->listens.n == 1 ? "" : "es");
    mk_config_generation_free(g);
    return MK_EXIT_OK;
}

static int print_config(const struct mk_config_source *origin)
{
    int code;
    struct mk_config_generation *g = load_config(origin, &code);
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (!g)
        return code;
    mk_explain_config(g, &text);
    mk_config_generation_free(g);
    return print_and_free_text(&text);
}

static int explain_request(const struct mk_arguments *a, const struct mk_config_source *origin)
{
    int code;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct mk_config_generation *g = load_config(origin, &code);
    if (!g)
        return code;
    struct mk_explain_request request = a->explained;
    request.method = a->words[0];
    request.url = a->words[1];
    mk_err e = mk_explain(g, &request, &text);
    mk_config_generation_free(g);
    if (!e)
        return print_and_free_text(&text);
    mk_buf_free(&text);
    if (e == -ENOMEM)
        return print_out_of_memory();
    fprintf(stderr,
            "monkey: `%s %s` is not a request: expected a method and a URL or a path, and valid headers\n",
            a->words[0], a->words[1]);
    return MK_EXIT_USAGE;
}

static int explain_sandbox(const struct mk_arguments *a, const struct mk_config_source *origin)
{
    int code;
    struct mk_config_generation *g = load_config(origin, &code);
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (!g)
        return code;
    mk_explain_sandbox(g, &a->explained, &text);
    mk_config_generation_free(g);
    return print_and_free_text(&text);
}

static int list_plugins(const struct mk_config_source *origin)
{
    int code;
    struct mk_config_generation *g = load_config(origin, &code);
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (!g)
        return code;
    mk_plugin_list_write_loaded(g, &text);
    mk_config_generation_free(g);
    return print_and_free_text(&text);
}

/* ---- Serving ---- */

/* Warns if the document root has no index file: the URL `/` then gets an error page. */
static void warn_missing_index(const struct mk_vhost *h, struct mk_buf *out)
{
    for (size_t i = 0; i < h->n_index; i++) {
        char name[PATH_MAX];
        int len = snprintf(name, sizeof name, "%.*s", MK_STR_ARG(h->index[i]));
        if (len > 0 && (size_t)len < sizeof name && faccessat(h->root.fd, name, F_OK, 0) == 0)
            return;
    }
    if (h->n_index)
        mk_buf_addf(out, "The folder has no %.*s: request its files by name.\n", MK_STR_ARG(h->index[0]));
}

static void print_urls(const struct mk_config_generation *g, const struct mk_listeners *listeners,
                       void *https)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const struct mk_vhost *h = &g->sites->host;
    bool one = g->n_sites == 1 && *h->root.path;
    mk_buf_addf(&text, "Monkey " MK_VERSION " serves %s at\n", one ? h->root.path : "its hosts");
    mk_urls_write(listeners, &g->listens, &text);
    if (one && h->n_routes == 1 && h->routes[0].handler == &mk_static)
        warn_missing_index(h, &text);
    if (https)
        mk_https_write_notice(https, &text);
    (void)print_and_free_text(&text);
}

static void renew_https_certificate(struct mk_log *log, void *https)
{
    mk_https_renew(https, log);
}

static int serve_config(const struct mk_arguments *a, const struct mk_config_source *origin,
                        struct mk_https *https, char **argv)
{
    const struct mk_master_options o = {.origin = *origin,
                                        .argv = argv,
                                        .daemon = a->daemon,
                                        .ctx = https,
                                        .on_serving = print_urls,
                                        .periodic_work = https ? renew_https_certificate : NULL};
    return mk_master_run(&o);
}

static int run_config_command(const struct mk_arguments *a, const struct mk_config_source *origin)
{
    if (strcmp(a->verb->name, "diff") == 0)
        return mk_config_commands_diff(origin, a->n_words ? a->words[0] : NULL);
    if (strcmp(a->verb->name, "configurations") == 0)
        return mk_config_commands_list(origin);
    if (strcmp(a->verb->name, "certificates") == 0)
        return mk_certificates_command_run(origin, &a->inventory);
    if (a->explained.sandbox || a->explained.systemd)
        return explain_sandbox(a, origin);
    return a->verb->n_args ? explain_request(a, origin) : list_plugins(origin);
}

static int run_with_config(const struct mk_arguments *a, struct mk_https *https, char **argv)
{
    struct mk_config_source origin;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    int code;
    mk_fd_raise_limit(); /* for all commands, so that -t finds the same errors as starting the server */
    if (!find_config_origin(a, https, &origin, &text))
        code = text.failed ? print_out_of_memory() : MK_EXIT_USAGE;
    else if (a->verb)
        code = run_config_command(a, &origin);
    else if (a->test)
        code = test_config(&origin);
    else
        code = a->print ? print_config(&origin) : serve_config(a, &origin, https, argv);
    mk_buf_free(&text);
    return code;
}

/* Not inlined, so that serving without HTTPS needs no stack space for struct mk_https. */
static MK_NOINLINE int run_with_https(const struct mk_arguments *a, char **argv)
{
    struct mk_https https;
    if (!mk_https_init(&https, a))
        return MK_EXIT_FAILED;
    int code = run_with_config(a, &https, argv);
    mk_https_fini(&https);
    return code;
}

static bool is_word_count_valid(const struct mk_arguments *a)
{
    if (a->verb->n_args == MK_CLI_OPTIONAL)
        return a->n_words <= 1;
    bool has_request = !a->explained.sandbox && !a->explained.systemd;
    return a->n_words == (has_request ? a->verb->n_args : 0);
}

static int run_arguments(const struct mk_arguments *a, char **argv)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (a->verb && !is_word_count_valid(a)) {
        fprintf(stderr, "usage: monkey [-c FILE|FOLDER | -o DIR] %s %s\n", a->verb->name, a->verb->args);
        return MK_EXIT_USAGE;
    }
    if (a->verb && strcmp(a->verb->name, "ca") == 0)
        return mk_https_show_ca();
    if (a->verb && strcmp(a->verb->name, "plugins") == 0 && !a->config && !a->folder) {
        mk_plugin_list_write_all(&text);
        return print_and_free_text(&text);
    }
    return a->https ? run_with_https(a, argv) : run_with_config(a, NULL, argv);
}

/* If a standard stream is closed, the next file that is opened would get its number, and receive our output.
 * The descriptors opened here are read-only, so printing still fails. */
static void reserve_standard_fds(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    mk_fd_close(&fd);
}

/* May the word be a plugin's command? Such a word is neither an option, nor a path, nor a command of the
 * program itself. A command takes precedence over a folder with the same name, such as `build`, whose path is
 * `./build`. */
static bool may_be_plugin_command(const char *word)
{
    return word && word[0] != '-' && word[0] != '\0' && word[0] != '.' && !strchr(word, '/') &&
           !mk_options_find_command(word);
}

/* After a usage error, tells users who meant a folder with the name of a command how to write its path.
 * Returns `code`. */
static int hint_folder_path(const char *word, int code)
{
    struct stat st;
    if (code == MK_EXIT_USAGE && stat(word, &st) == 0 && S_ISDIR(st.st_mode))
        fprintf(stderr, "`%s` is a command. To serve the folder `%s`, write `monkey ./%s`.\n", word, word,
                word);
    return code;
}

/* Reports options of the server that precede the command of a plugin, with the help of the command, and returns true: the
 * command parses only its own options, and would ignore these. */
static bool reject_options_before_command(int argc, char **argv)
{
    char *word = mk_options_first_operand(argc, argv), *words[] = {word, (char[]){"--help"}, NULL};
    int code;
    if (word == argv[1] || !may_be_plugin_command(word) || !mk_cli_plugins_has_command(word))
        return false;
    fprintf(stderr, "monkey: `%s` takes no options of the server, only its own, after its name:\n", word);
    (void)!dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)mk_cli_plugins_run_command(2, words, &code);
    (void)hint_folder_path(word, MK_EXIT_USAGE);
    return true;
}

/* `monkey help` prints the help of the program, and `monkey help COMMAND` that of a command. */
static int run_help_command(const struct mk_arguments *a)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    char *words[] = {a->n_words ? a->words[0] : NULL, (char[]){"--help"}, NULL};
    int code = MK_EXIT_USAGE;
    const struct mk_cli_command *own = words[0] ? mk_options_find_command(words[0]) : NULL;
    if (a->n_words > 1) {
        fputs("usage: monkey help [COMMAND]\n", stderr);
        return code;
    }
    if (!words[0])
        mk_options_write_help(&text, mk_cli_plugins_write_commands);
    else if (own)
        mk_options_write_command_help(&text, own);
    else if (mk_cli_plugins_run_command(2, words, &code))
        return code;
    if (text.len)
        return print_and_free_text(&text);
    fprintf(stderr, "monkey: there is no command `%s`\nTry `monkey help`.\n", words[0]);
    return code;
}

int main(int argc, char **argv)
{
    reserve_standard_fds();
    struct mk_arguments a;
    struct mk_explain_request explained;
    struct mk_certificates_options inventory;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    int code;
    if (may_be_plugin_command(argv[1]) && mk_cli_plugins_run_command(argc - 1, argv + 1, &code))
        return hint_folder_path(argv[1], code);
    if (!mk_explain_take_options(&argc, argv, &explained) ||
        !mk_certificates_command_take_options(&argc, argv, mk_options_first_operand(argc, argv),
                                              &inventory) ||
        reject_options_before_command(argc, argv) || !mk_options_parse(argc, argv, &a))
        return MK_EXIT_USAGE;
    a.explained = explained;
    a.inventory = inventory;
    if (a.help)
        mk_options_write_help(&text, mk_cli_plugins_write_commands);
    else if (a.version)
        mk_buf_add(&text, MK_STR("Monkey " MK_VERSION "\n"));
    else if (a.build)
        mk_build_info_write(&text);
    else if (a.verb && strcmp(a.verb->name, "help") == 0)
        return hint_folder_path(a.verb->name, run_help_command(&a));
    else
        return a.verb ? hint_folder_path(a.verb->name, run_arguments(&a, argv)) : run_arguments(&a, argv);
    return print_and_free_text(&text);
}
