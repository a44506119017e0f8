/* SPDX-License-Identifier: Apache-2.0 */
#include "command_run.h"

#include "cache.h"
#include "command_routes.h"
#include "file_watch.h"
#include "ipc_protocol.h"
#include "ipc_server.h"
#include "options.h"
#include "process.h"
#include "servers.h"
#include "symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/mem.h>
#include <monkey/text.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    WHY_MAX = 256 * 1024,
    NAMES_MAX = 1024,
    OWN_FDS = 3 + DEV_SERVERS_FDS,
    DOCS_MAX = 4,
    UPDATES_MAX = 3,
    SOURCES_MAX = 100,
    WORKERS_MAX = 64
};

struct run {
    struct dev_paths paths;
    struct dev_source_set source_set;
    struct dev_servers servers;
    struct dev_ipc_server ipc_server;
    const char *extra;                 /* a configuration file */
    bool quiet;                        /* print no line for each request */
    const char *workers;               /* NULL: not given */
    int watch, ending, children;       /* file changes, termination signals, SIGCHLD */
    struct dev_process docs[DOCS_MAX]; /* `monkey doc` processes that generate pages */
    bool serves;                       /* the back server has loaded the current sources */
    struct mk_buf why;                 /* why the back server could not be started */
    struct pollfd fds[DEV_IPC_CLIENTS_MAX + 1 + OWN_FDS];
};

static const char usage[] =
    "usage: monkey run [-p [ADDRESS:]PORT] [-n NAMES] [-i FILE] [-w NUMBER] [-q] SOURCE.c...|FOLDER\n";
static const char help[] =
    "Compiles and serves a Duda service, and rebuilds it whenever its source changes.\n"
    "\n"
    "  -p, --port [ADDRESS:]PORT  address to listen on; default: 127.0.0.1:2001\n"
    "  -n, --names NAME,...       also accept these host names, besides localhost and addresses\n"
    "  -i, --include FILE         include a file with configuration sections of the service or of plugins\n"
    "  -w, --workers NUMBER       number of worker processes, 1 to 64; default: 1\n"
    "  -q, --quiet                do not print a line for each request\n"
    "  -h, --help                 print this help\n"
    "\n"
    "All files of a FOLDER and its subfolders form one service if one of them has a DUDA_SERVICE(). "
    "Otherwise\n"
    "each NAME.c serves the paths below /NAME and is compiled at the first request for them; index.c serves "
    "/.\n"
    "Compiler errors and crashes appear here and in the browser. /.duda/doc lists the "
    "routes\n"
    "of a service, /NAME/.duda/doc in a FOLDER. Ctrl+C stops the server.\n";

/* ---- Following the sources ---- */

/* Prints why the server cannot be started, unless it has already printed this error. */
static void print_new_error(struct mk_buf *known, struct mk_buf *error, bool *has_new_error)
{
    if (!mk_str_eq(mk_buf_str(error), mk_buf_str(known))) {
        dev_print_text(stderr, mk_buf_str(error));
        *has_new_error = true;
    }
    mk_buf_free(known);
    *known = *error;
}

static bool restart_back_server(struct run *r, struct mk_buf *known, bool *has_new_error)
{
    struct mk_buf error = mk_buf_growing(WHY_MAX);
    bool ok = dev_servers_replace_back(&r->servers, &r->source_set, r->extra, &error);
    if (ok)
        mk_buf_clear(&error);
    print_new_error(known, &error, has_new_error);
    return ok;
}

/* Adds the sources that the server could not load together (is_held) one at a time, and restarts the server
 * for each. The server then runs every source that it can load. */
static void restart_with_each_held_source(struct run *r, bool *has_new_error)
{
    for (size_t i = 0; i < r->source_set.n; i++) {
        struct dev_source_unit *unit = r->source_set.at[i];
        if (!unit->is_held)
            continue;
        unit->is_held = false;
        (void)dev_source_set_mark_loaded(&r->source_set, restart_back_server(r, &unit->why, has_new_error));
    }
    r->serves = r->servers.back.pid || restart_back_server(r, &r->why, has_new_error);
}

/* Returns true if there is a new error, or if r->serves has changed. */
static bool replace_back_server(struct run *r)
{
    bool before = r->serves, has_new_error = false;
    struct mk_buf error = mk_buf_growing(WHY_MAX);
    r->serves = dev_servers_replace_back(&r->servers, &r->source_set, r->extra, &error);
    bool any = dev_source_set_mark_loaded(&r->source_set, r->serves);
    bool tries_each = !r->serves && any && r->source_set.is_folder;
    if (r->serves || tries_each)
        mk_buf_clear(&error);
    print_new_error(&r->why, &error, &has_new_error);
    if (tries_each)
        restart_with_each_held_source(r, &has_new_error);
    return has_new_error || r->serves != before;
}

static void watch_all_files(struct run *r)
{
    struct mk_buf folders = mk_buf_growing(WHY_MAX);
    dev_source_set_list_folders(&r->source_set, &folders);
    for (mk_str rest = mk_buf_str(&folders); rest.len;) {
        char folder[PATH_MAX];
        mk_str line = mk_str_cut(&rest, '\n');
        if (dev_paths_format(folder, "%.*s", MK_STR_ARG(line)))
            dev_file_watch_add_folder(r->watch, folder);
    }
    mk_buf_free(&folders);
    dev_file_watch_add_files(r->watch, mk_buf_str(&r->source_set.extra_files));
    for (size_t i = 0; i < r->source_set.n; i++) {
        dev_file_watch_add_files(r->watch, mk_str_from_c(r->source_set.at[i]->path));
        dev_file_watch_add_files(r->watch, mk_buf_str(&r->source_set.at[i]->built.files));
    }
}

/* Compiles files that were saved during the compilation, for up to UPDATES_MAX rounds; later changes wait for
 * the next request. A header in another folder is only watched after the first compilation. */
static bool recompile_changed_sources(struct run *r)
{
    bool has_changed = false;
    for (unsigned i = 0; i < UPDATES_MAX && (i == 0 || dev_source_set_is_outdated(&r->source_set)); i++) {
        watch_all_files(r);
        has_changed = dev_source_set_update(&r->source_set) || has_changed;
        watch_all_files(r);
    }
    return has_changed;
}

static void rebuild_and_restart(struct run *r)
{
    bool has_changed = recompile_changed_sources(r);
    bool is_due = dev_source_set_needs_restart(&r->source_set) || !r->serves;
    if (!has_changed && !is_due)
        return;
    if (!r->source_set.is_folder && !dev_source_set_is_compiled(&r->source_set))
        r->serves = false;
    else if (is_due)
        has_changed = replace_back_server(r) || has_changed;
    if (has_changed)
        dev_ipc_server_publish_state(&r->ipc_server, r->ipc_server.state + 1);
}

static void check_for_file_changes(struct run *r)
{
    if (!dev_file_watch_drain(r->watch) && !dev_source_set_changed_in_build(&r->source_set))
        return;
    dev_source_set_retry_failed(&r->source_set);
    rebuild_and_restart(r);
}

/* ---- Requests from the front server ---- */

static void write_failure_page(struct run *r, const struct dev_source_unit *unit, bool html,
                               struct mk_buf *response)
{
    const struct dev_error_page page = {.out = response, .html = html};
    mk_buf_addf(response, "page 500 text/%s; charset=utf-8\n", html ? "html" : "plain");
    if (!unit || unit->built.ok) {
        dev_error_page_begin(&page, "The service does not start",
                             MK_STR("It compiles, but the server cannot load it."));
        dev_error_page_add_messages(&page, mk_buf_str(unit && unit->is_held ? &unit->why : &r->why),
                                    MK_STR("Messages of the server"));
    } else {
        dev_error_page_begin(&page, "The service does not compile", MK_STR(""));
        dev_source_set_write_errors(unit, &page);
    }
    dev_error_page_end(&page, r->ipc_server.state);
}

static struct dev_process *find_doc_slot(struct run *r)
{
    for (size_t i = 0; i < DOCS_MAX; i++)
        if (!r->docs[i].pid || dev_process_try_wait(&r->docs[i]) >= 0)
            return &r->docs[i];
    dev_process_stop(&r->docs[0], SIGKILL); /* as many processes as slots still run, so they probably hang */
    return &r->docs[0];
}

/* Starts `monkey doc`, which loads the service and writes the documentation page to `fd`. Only the browser
 * waits for this process. */
static bool start_doc_process(struct run *r, const struct dev_source_unit *unit, int fd)
{
    static const mk_str head = MK_STR_INIT("page 200 text/html; charset=utf-8\n");
    struct dev_argv words;
    dev_argv_init(&words);
    dev_argv_add(&words, mk_str_from_c(r->paths.program));
    dev_argv_add(&words, MK_STR("doc"));
    if (r->source_set.is_folder)
        dev_argv_add(&words, mk_str_from_c(unit->path));
    for (size_t i = 0; !r->source_set.is_folder && i < r->source_set.words.n; i++)
        dev_argv_add(&words, mk_str_from_c(r->source_set.words.at[i]));
    bool ok = fcntl(fd, F_SETFL, 0) == 0 && send(fd, head.p, head.len, MSG_NOSIGNAL) == (ssize_t)head.len &&
              dev_process_start_stdout_to(find_doc_slot(r), &words, fd);
    dev_argv_free(&words);
    return ok;
}

/* Returns whether the target requests the documentation of this source: "/.duda/doc" documents the only
 * source, or index.c of a folder; "/shop/.duda/doc" documents shop.c. */
static bool is_doc_request(const struct dev_source_unit *unit, mk_str target)
{
    mk_str url_segment = mk_str_from_c(unit->url_segment), path = mk_str_cut(&target, '?');
    return mk_str_eq(mk_str_skip(path, url_segment.len ? url_segment.len + 1 : 0), MK_STR(DEV_DOC_PATH));
}

static bool on_request_check(void *ctx, bool html, mk_str method, mk_str target, int fd,
                             struct mk_buf *response)
{
    struct run *r = ctx;
    check_for_file_changes(r);
    bool is_new = dev_source_set_add_for_target(&r->source_set, target);
    const struct dev_source_unit *unit = dev_source_set_find_by_target(&r->source_set, target);
    if (is_new)
        rebuild_and_restart(r);
    bool serves = r->serves && (!unit || (unit->built.ok && !unit->is_held));
    if (serves && unit && is_doc_request(unit, target))
        return !start_doc_process(r, unit, fd);
    if (serves) {
        dev_servers_mark_request(&r->servers, method, target);
        mk_buf_add(response, MK_STR("go\n"));
    } else {
        write_failure_page(r, unit, html, response);
    }
    return true;
}

/* Writes the cause of the crash, and the request whose handler has crashed. The request without a response
 * may be another one, because all requests of a worker end when it crashes. */
static void write_crash_cause(struct mk_buf *out, mk_str report, mk_str method, mk_str target)
{
    struct mk_buf own = mk_buf_growing(2 * DEV_LINE_MAX);
    mk_str running = dev_symbolize_find_running(report);
    mk_buf_add(&own, MK_STR("the handler of "));
    mk_log_escape_to(&own, method, own.len + 32);
    mk_buf_add_char(&own, ' ');
    mk_log_escape_to(&own, target, own.len + 256);
    dev_symbolize_write_cause(out, report);
    mk_buf_addf(out, " in %.*s", MK_STR_ARG(running.p ? running : mk_buf_str(&own)));
    if (running.p && !mk_str_eq(running, mk_buf_str(&own)))
        mk_buf_addf(out, ". %.*s %.*s was in progress, too.", MK_STR_ARG(method), MK_STR_ARG(target));
    mk_buf_free(&own);
}

/* Writes which handler had blocked the event loop until the watchdog killed the worker. */
static void write_stall(const struct dev_error_page *page, mk_str report)
{
    dev_error_page_begin(page, "The service blocked the event loop", mk_str_cut(&report, '\n'));
    dev_symbolize_write_stack(page, report);
    dev_error_page_add_prose(
        page,
        MK_STR("The watchdog has replaced the worker process; other requests that it was serving have "
               "failed, too. To allow a handler more time, set WatchdogTimeout in the [SERVER] section of "
               "the file that you pass with -i."));
}

static void on_missing_response(void *ctx, bool html, mk_str method, mk_str target, struct mk_buf *response)
{
    struct run *r = ctx;
    const struct dev_error_page page = {.out = response, .html = html};
    struct mk_buf about = mk_buf_growing(4 * DEV_LINE_MAX);
    mk_str words = dev_servers_await_crash_output(&r->servers, method, target);
    mk_buf_addf(response, "page 500 text/%s; charset=utf-8\n", html ? "html" : "plain");
    if (r->servers.stderr_reader.has_crashed) {
        write_crash_cause(&about, mk_buf_str(&r->servers.stderr_reader.crash), method, target);
        dev_error_page_begin(&page, "The service crashed", mk_buf_str(&about));
        dev_symbolize_write_stack(&page, mk_buf_str(&r->servers.stderr_reader.crash));
    } else if (r->servers.was_blocked) {
        write_stall(&page, mk_buf_str(&r->servers.stderr_reader.held));
    } else {
        mk_buf_addf(&about, "%.*s %.*s got no response.", MK_STR_ARG(method), MK_STR_ARG(target));
        dev_error_page_begin(&page, "The service closed the connection", mk_buf_str(&about));
    }
    if (words.len) {
        dev_error_page_add_heading(&page, MK_STR("Output"));
        dev_error_page_add_text(&page, words);
    }
    dev_error_page_end(&page, r->ipc_server.state);
    mk_buf_free(&about);
}

static const struct dev_ipc_server_ops ops = {.check_request = on_request_check,
                                              .fault = on_missing_response};

/* ---- The main loop ---- */

static void add_pollfd(struct run *r, size_t *n, int fd)
{
    if (fd >= 0)
        r->fds[(*n)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static size_t collect_pollfds(struct run *r)
{
    size_t n = 0;
    add_pollfd(r, &n, r->ending);
    add_pollfd(r, &n, r->children);
    add_pollfd(r, &n, r->watch);
    n += dev_servers_add_pollfds(&r->servers, r->fds + n);
    return n + dev_ipc_server_add_pollfds(&r->ipc_server, r->fds + n);
}

static bool drain_signalfd(int fd)
{
    struct signalfd_siginfo info;
    bool any = false;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        any = true;
    return any;
}

static void reap_doc_processes(struct run *r)
{
    for (size_t i = 0; i < DOCS_MAX; i++)
        (void)dev_process_try_wait(&r->docs[i]);
}

static int run_event_loop(struct run *r)
{
    for (;;) {
        size_t n = collect_pollfds(r);
        if (poll(r->fds, n, -1) < 0 && errno != EINTR)
            return dev_print_error(DEV_EXIT_FAILED, "run", NULL, strerror(errno));
        if (drain_signalfd(r->ending))
            return DEV_EXIT_OK;
        if (drain_signalfd(r->children))
            reap_doc_processes(r);
        dev_servers_read_output(&r->servers);
        if (!dev_servers_is_front_running(&r->servers))
            return dev_print_error(DEV_EXIT_FAILED, "run", NULL, "the front server has exited");
        check_for_file_changes(r);
        dev_ipc_server_process(&r->ipc_server);
    }
}

/* ---- Start and stop ---- */

static int open_signalfd(const int *ours, size_t n)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, ours[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Opens separate descriptors for termination signals and SIGCHLD, because only the former may interrupt code
 * that waits for a child. */
static bool setup_signalfds(struct run *r)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP}, children[] = {SIGCHLD};
    (void)signal(SIGPIPE, SIG_IGN);
    r->ending = open_signalfd(ending, MK_LEN(ending));
    r->children = open_signalfd(children, MK_LEN(children));
    dev_process_set_interrupt_fd(r->ending);
    return r->ending >= 0 && r->children >= 0;
}

/* Formats the listen address. A number alone is a port on the loopback address, which other machines cannot
 * reach. */
static void format_listen_address(char buf[128], const char *port)
{
    bool is_number = port && *port && strspn(port, "0123456789") == strlen(port);
    if (!port)
        snprintf(buf, 128, "127.0.0.1:2001");
    else
        snprintf(buf, 128, "%s%.100s", is_number ? "127.0.0.1:" : "", port);
}

/* Lists the accepted host names. If other machines can reach the server, these include the name of this
 * machine. */
static void format_host_names(struct mk_buf *out, const char *listen, const char *names)
{
    char own[HOST_NAME_MAX + 1] = "";
    if (names)
        mk_buf_addf(out, "%s ", names);
    if (strncmp(listen, "127.", 4) != 0 && gethostname(own, sizeof own - 1) == 0)
        mk_buf_addf(out, "%s %s.local", own, own);
}

static bool start_servers_and_build(struct run *r, const struct dev_service_words *sources, const char *port,
                                    const char *names)
{
    char ipc_path[PATH_MAX], listen[128], buf[NAMES_MAX + 1] = "";
    struct mk_buf all = mk_buf_fixed(buf, NAMES_MAX);
    bool watches = setup_signalfds(r);
    r->watch = dev_file_watch_open();
    format_listen_address(listen, port);
    if (strpbrk(listen, " \t\r\n\"#$"))
        return dev_print_error(false, "run", port, "it is not an address");
    format_host_names(&all, listen, names);
    if (all.failed || strpbrk(buf, "\r\n"))
        return dev_print_error(false, "run", names, "the names are too long");
    if (r->watch < 0 || !watches || !dev_paths_find(&r->paths) ||
        !dev_source_set_init(&r->source_set, &r->paths, sources) ||
        !dev_servers_init(&r->servers, &r->paths, r->source_set.path) ||
        !dev_paths_format(ipc_path, "%s/ipc", r->servers.folder) ||
        !dev_ipc_server_open(&r->ipc_server, ipc_path, &ops, r))
        return false;
    r->source_set.extra = r->extra;
    r->servers.workers = r->workers;
    r->ipc_server.state = (uint64_t)time(NULL) * 1000;
    dev_cache_clean(&r->paths);
    if (r->source_set.is_folder || r->source_set.is_service_folder)
        dev_file_watch_add_folder(r->watch, r->source_set.path);
    else /* also detects files that are saved during the compilation */
        dev_file_watch_add_files(r->watch, mk_str_from_c(r->source_set.path));
    printf("Monkey runs %s%s at\n", sources->at[0],
           r->source_set.is_service_folder ? " as one service"
           : sources->n > 1                ? " and the other files"
                                           : "");
    fflush(stdout);
    return dev_servers_start_front(&r->servers, listen, buf, r->quiet);
}

static int serve_until_interrupted(struct run *r, const struct dev_service_words *sources, const char *port,
                                   const char *names)
{
    int code = DEV_EXIT_FAILED;
    if (start_servers_and_build(r, sources, port, names)) {
        rebuild_and_restart(r);
        code = run_event_loop(r);
    }
    dev_ipc_server_close(&r->ipc_server);
    for (size_t i = 0; i < DOCS_MAX; i++)
        dev_process_stop(&r->docs[i], SIGKILL);
    dev_servers_stop(&r->servers);
    dev_source_set_free(&r->source_set);
    mk_buf_free(&r->why);
    return code;
}

static bool is_number_of_workers(const char *text)
{
    uint64_t n;
    return mk_num_parse(mk_str_from_c(text), &n) && n >= 1 && n <= WORKERS_MAX;
}

static int run_run_command(int argc, char **argv)
{
    const char *port = NULL, *names = NULL, *extra = NULL, *workers = NULL;
    bool quiet = false;
    const struct dev_option options[] = {{'p', "port", &port, NULL},
                                         {'n', "names", &names, NULL},
                                         {'i', "include", &extra, NULL},
                                         {'w', "workers", &workers, NULL},
                                         {'q', "quiet", NULL, &quiet}};
    struct dev_options opts = {.usage = usage,
                               .help = help,
                               .options = options,
                               .n_options = MK_LEN(options),
                               .args_min = 1,
                               .args_max = SOURCES_MAX};
    char path[PATH_MAX];
    int code;
    if (!dev_options_parse(&opts, argc, argv, &code))
        return code;
    if (workers && !is_number_of_workers(workers))
        return dev_print_error(DEV_EXIT_USAGE, "run", workers, "the number of workers must be from 1 to 64");
    if (extra && !realpath(extra, path))
        return dev_print_error(DEV_EXIT_FAILED, "run", extra, strerror(errno));
    struct run *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return dev_print_error(DEV_EXIT_FAILED, "run", NULL, strerror(ENOMEM));
    r->extra = extra ? path : NULL;
    r->quiet = quiet;
    r->workers = workers;
    r->ipc_server.fd = r->watch = r->ending = r->children = -1;
    for (size_t i = 0; i < DOCS_MAX; i++)
        r->docs[i] = (struct dev_process){.out = -1, .err = -1};
    code = serve_until_interrupted(
        r, &(struct dev_service_words){(const char *const *)opts.args, (size_t)opts.n_args}, port, names);
    mk_mem_free(r);
    return code;
}

const struct mk_command dev_command_run = {
    .name = "run",
    .args = "SOURCE.c...|FOLDER",
    .help = "Compile and serve a service, again after each change.",
    .run = run_run_command,
};
