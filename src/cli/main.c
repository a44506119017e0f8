/* SPDX-License-Identifier: Apache-2.0 */
/* The program: what the command line asks for, done with what the layers below offer. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/about.h"
#include "cli/https.h"
#include "cli/options.h"
#include "cli/plugins.h"
#include "cli/urls.h"
#include "conf/print.h"
#include "conf/words.h"
#include "os/fd.h"
#include "server/explain.h"
#include "server/master.h"
#include "web/static.h"

enum { TEXT_MAX = 1024 * 1024 };

#define DEFAULT_CONFIG MK_SYSCONFDIR "/monkey"

static int complain_of_memory(void)
{
    fputs("monkey: out of memory\n", stderr);
    return MK_EXIT_FAILED;
}

static int print_and_free(struct mk_buf *text)
{
    if (text->failed) {
        mk_buf_free(text);
        return complain_of_memory();
    }
    bool ok = fwrite(mk_buf_str(text).p, 1, text->len, stdout) == text->len && fflush(stdout) == 0;
    mk_buf_free(text);
    return ok ? MK_EXIT_FINE : MK_EXIT_FAILED;
}

/* ---- A folder as a configuration ---- */

static void write_folder_config(struct mk_buf *out, const char *folder, const struct mk_https *https)
{
    struct mk_buf quoted = mk_buf_growing(2 * PATH_MAX);
    mk_conf_words_write_text(&quoted, mk_str_from_c(folder));
    mk_buf_addf(out, "[SERVER]\n    LogLevel warn\n    AccessLogFormat short\n    AccessLog %s\n",
                isatty(STDOUT_FILENO) ? "stdout" : "off");
    mk_buf_add(out, MK_STR("[HOST]\n"));
    mk_conf_print_entry(MK_STR("DocumentRoot"), mk_buf_str(&quoted), out);
    if (https)
        mk_https_write_config(https, out);
    if (quoted.failed)
        out->failed = true;
    mk_buf_free(&quoted);
    if (mk_plugins_can_load("dirlisting")) /* a folder without an index file is more than an error then */
        mk_buf_add(out, MK_STR("[PLUGINS]\n    Load dirlisting\n[DIRLISTING]\n    Listing on\n"));
}

/* Seen from where we are now: a daemon goes elsewhere, and reads its configuration again when it is told to.
 */
static const char *absolute(const char *path, char room[PATH_MAX])
{
    char here[PATH_MAX];
    if (!path || path[0] == '/' || !getcwd(here, sizeof here))
        return path;
    int len = snprintf(room, PATH_MAX, "%s/%s", here, path);
    return len > 0 && len < PATH_MAX ? room : path;
}

/* False: there is nothing to serve, and it was said why. */
static bool find_origin(const struct mk_arguments *a, const struct mk_https *https, struct mk_origin *origin,
                        struct mk_buf *text)
{
    static char folder[PATH_MAX], config[PATH_MAX], pid_file[PATH_MAX];
    *origin = (struct mk_origin){.path = absolute(a->config, config),
                                 .overrides = {.listens = a->n_listens ? a->listens : NULL,
                                               .listen_host = MK_STR("0.0.0.0"),
                                               .workers = a->workers,
                                               .pid_file = absolute(a->pid_file, pid_file)}};
    if (!a->config && !a->folder && access(DEFAULT_CONFIG, R_OK) == 0)
        origin->path = DEFAULT_CONFIG;
    if (origin->path)
        return true;
    if (!a->folder) {
        fprintf(stderr,
                "monkey: what shall be served? Name a folder (`monkey .`) or a configuration (`monkey -c "
                "monkey.conf`).\nTry `monkey --help`.\n");
        return false;
    }
    if (!realpath(a->folder, folder)) {
        perror(a->folder);
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

/* ---- Looking at a configuration ---- */

/* NULL, and the exit code: it was said what is wrong. */
static struct mk_generation *load(const struct mk_origin *origin, int *code)
{
    struct mk_arena arena;
    struct mk_conf_report report;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    mk_arena_init(&arena, NULL);
    struct mk_generation *g = mk_generation_load(origin, &arena, &report);
    mk_conf_report_print(&report, &text);
    if (text.len)
        fwrite(text.p, 1, text.len, stderr);
    *code = g ? MK_EXIT_FINE : report.no_memory ? complain_of_memory() : MK_EXIT_CONFIGURATION;
    mk_buf_free(&text);
    mk_arena_fini(&arena);
    return g;
}

static int test_config(const struct mk_origin *origin)
{
    int code;
    struct mk_generation *g = load(origin, &code);
    if (!g)
        return code;
    printf("The configuration is fine: %zu host%s, %zu address%s.\n", g->n_sites, g->n_sites == 1 ? "" : "s",
           g->server.listens.n, g->server.listens.n == 1 ? "" : "es");
    mk_generation_free(g);
    return MK_EXIT_FINE;
}

static int print_config(const struct mk_origin *origin)
{
    int code;
    struct mk_generation *g = load(origin, &code);
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (!g)
        return code;
    mk_generation_print(g, &text);
    mk_generation_free(g);
    return print_and_free(&text);
}

static int explain(const struct mk_arguments *a, const struct mk_origin *origin)
{
    int code;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    struct mk_generation *g = load(origin, &code);
    if (!g)
        return code;
    mk_err e = mk_explain(g, mk_str_from_c(a->words[0]), mk_str_from_c(a->words[1]), &text);
    mk_generation_free(g);
    if (!e)
        return print_and_free(&text);
    mk_buf_free(&text);
    if (e == -ENOMEM)
        return complain_of_memory();
    fprintf(stderr, "monkey: `%s %s` is not a request: expected a method and a URL or a path\n", a->words[0],
            a->words[1]);
    return MK_EXIT_USAGE;
}

static int list_plugins(const struct mk_origin *origin)
{
    int code;
    struct mk_generation *g = load(origin, &code);
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (!g)
        return code;
    mk_plugins_write_loaded(g, &text);
    mk_generation_free(g);
    return print_and_free(&text);
}

/* ---- Serving ---- */

/* Whoever opens the URL would find nothing, and wonder. */
static void say_what_is_missing(const struct mk_host *h, struct mk_buf *out)
{
    for (size_t i = 0; i < h->n_index; i++) {
        char name[PATH_MAX];
        int len = snprintf(name, sizeof name, "%.*s", MK_STR_ARG(h->index[i]));
        if (len > 0 && (size_t)len < sizeof name && faccessat(h->root.fd, name, F_OK, 0) == 0)
            return;
    }
    if (h->n_index)
        mk_buf_addf(out, "There is no %.*s in it: ask for its files by their names.\n",
                    MK_STR_ARG(h->index[0]));
}

static void say_where(const struct mk_generation *g, const struct mk_listeners *listeners, void *https)
{
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    const struct mk_host *h = &g->sites->host;
    bool one = g->n_sites == 1 && *h->root.path;
    mk_buf_addf(&text, "Monkey " MK_VERSION " serves %s at\n", one ? h->root.path : "its hosts");
    mk_urls_write(listeners, &g->server.listens, &text);
    if (one && h->n_routes == 1 && h->routes[0].handler == &mk_static)
        say_what_is_missing(h, &text);
    if (https)
        mk_https_write_news(https, &text);
    (void)print_and_free(&text);
}

static void look_after_https(struct mk_log *log, void *https)
{
    mk_https_look(https, log);
}

static int serve(const struct mk_arguments *a, const struct mk_origin *origin, struct mk_https *https,
                 char **argv)
{
    const struct mk_master_options o = {.origin = *origin,
                                        .argv = argv,
                                        .daemon = a->daemon,
                                        .ctx = https,
                                        .on_serving = say_where,
                                        .look = https ? look_after_https : NULL};
    return mk_master_run(&o);
}

static int run_with(const struct mk_arguments *a, struct mk_https *https, char **argv)
{
    struct mk_origin origin;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    int code;
    if (!find_origin(a, https, &origin, &text))
        code = text.failed ? complain_of_memory() : MK_EXIT_USAGE;
    else if (a->verb)
        code = a->verb->n_args ? explain(a, &origin) : list_plugins(&origin);
    else if (a->test)
        code = test_config(&origin);
    else
        code = a->print ? print_config(&origin) : serve(a, &origin, https, argv);
    mk_buf_free(&text);
    return code;
}

static int run(const struct mk_arguments *a, char **argv)
{
    struct mk_https https;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    if (a->verb && a->n_words != a->verb->n_args) {
        fprintf(stderr, "usage: monkey [-c FILE|FOLDER | -o DIR] %s %s\n", a->verb->name, a->verb->args);
        return MK_EXIT_USAGE;
    }
    if (a->verb && strcmp(a->verb->name, "authority") == 0)
        return mk_https_show_authority();
    if (a->verb && a->verb->n_args == 0 && !a->config && !a->folder) {
        mk_plugins_write_all(&text);
        return print_and_free(&text);
    }
    if (!a->https)
        return run_with(a, NULL, argv);
    if (!mk_https_start(&https, a))
        return MK_EXIT_FAILED;
    int code = run_with(a, &https, argv);
    mk_https_end(&https);
    return code;
}

/* Where standard streams are closed, files that we open would become them, and what is printed would end up
 * in these. Printing goes on failing: nothing can be written to what takes their place. */
static void fill_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    mk_fd_close(&fd);
}

/* Not an option, nothing that could be served, none of our own commands. */
static bool is_word_of_plugin(const char *word)
{
    return word && word[0] != '-' && !strchr(word, '/') && access(word, F_OK) != 0 &&
           !mk_options_find_command(word);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    struct mk_arguments a;
    struct mk_buf text = mk_buf_growing(TEXT_MAX);
    int code;
    if (is_word_of_plugin(argv[1]) && mk_plugins_run_verb(argc - 1, argv + 1, &code))
        return code;
    if (!mk_options_parse(argc, argv, &a))
        return MK_EXIT_USAGE;
    if (a.help)
        mk_options_write_help(&text);
    else if (a.version)
        mk_buf_add(&text, MK_STR("Monkey " MK_VERSION "\n"));
    else if (a.build)
        mk_about_write(&text);
    else
        return run(&a, argv);
    return print_and_free(&text);
}
