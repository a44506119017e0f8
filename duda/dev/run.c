/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include "child.h"
#include "desk.h"
#include "frames.h"
#include "office.h"
#include "order.h"
#include "routes.h"
#include "servers.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <monkey/mem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WHY_MAX = 256 * 1024, NAMES_MAX = 1024, OWN_FDS = 3 + DEV_SERVERS_FDS, DOCS_MAX = 4, UPDATES_MAX = 3 };

struct run {
    struct dev_places places;
    struct dev_units units;
    struct dev_servers servers;
    struct dev_office office;
    const char *extra;               /* a file of the configuration */
    int watch, ending, children;     /* descriptors: of changed files, of signals */
    struct dev_child docs[DOCS_MAX]; /* they write pages about routes */
    bool serves;                     /* the server with the services has what the sources say */
    struct mk_buf why;               /* it could not be started */
    struct pollfd fds[DEV_VISITORS_MAX + 1 + OWN_FDS];
};

static const char usage[] = "usage: monkey run [-p [ADDRESS:]PORT] [-n NAMES] [-i FILE] SOURCE.c|FOLDER\n";
static const char help[] =
    "Compiles a service of Duda, serves it, and does both again whenever the source changes.\n"
    "\n"
    "  -p, --port [ADDRESS:]PORT  where to listen; 127.0.0.1:2001 if it is not said\n"
    "  -n, --names NAME,...       answer for these hosts, too, beside localhost and addresses\n"
    "  -i, --include FILE         more of the configuration: sections of the service and of other plugins\n"
    "  -h, --help                 this text\n"
    "\n"
    "In a FOLDER each NAME.c answers below /NAME, and is compiled when that is asked for; index.c answers at "
    "/.\n"
    "Mistakes and crashes are shown here and in the browser. /.duda/doc lists the routes of a service, in a "
    "FOLDER\n"
    "/NAME/.duda/doc. Ctrl+C ends it.\n";

/* ---- Following the sources ---- */

/* Says why the server cannot be started, unless that is known. */
static void take_why(struct mk_buf *known, struct mk_buf *why, bool *news)
{
    if (!mk_str_eq(mk_buf_str(why), mk_buf_str(known))) {
        dev_order_write(stderr, mk_buf_str(why));
        *news = true;
    }
    mk_buf_free(known);
    *known = *why;
}

static bool start(struct run *r, struct mk_buf *known, bool *news)
{
    struct mk_buf why = mk_buf_growing(WHY_MAX);
    bool ok = dev_servers_swap(&r->servers, &r->units, r->extra, &why);
    if (ok)
        mk_buf_clear(&why);
    take_why(known, &why, news);
    return ok;
}

/* The server goes on without those that it cannot load. */
static void start_each(struct run *r, bool *news)
{
    for (size_t i = 0; i < r->units.n; i++) {
        struct dev_unit *one = r->units.at[i];
        if (!one->is_held)
            continue;
        one->is_held = false;
        (void)dev_units_settle(&r->units, start(r, &one->why, news));
    }
    r->serves = r->servers.back.pid || start(r, &r->why, news);
}

/* True: there is news. */
static bool swap(struct run *r)
{
    bool before = r->serves, news = false;
    struct mk_buf why = mk_buf_growing(WHY_MAX);
    r->serves = dev_servers_swap(&r->servers, &r->units, r->extra, &why);
    bool any = dev_units_settle(&r->units, r->serves);
    bool tries_each = !r->serves && any && r->units.is_folder;
    if (r->serves || tries_each)
        mk_buf_clear(&why);
    take_why(&r->why, &why, &news);
    if (tries_each)
        start_each(r, &news);
    return news || r->serves != before;
}

static void watch_all(struct run *r)
{
    dev_watch_folder(r->watch, r->units.templates);
    dev_watch_folders_of(r->watch, mk_buf_str(&r->units.extra_files));
    for (size_t i = 0; i < r->units.n; i++) {
        dev_watch_folders_of(r->watch, mk_str_from_c(r->units.at[i]->path));
        dev_watch_folders_of(r->watch, mk_buf_str(&r->units.at[i]->built.files));
    }
}

/* What is saved meanwhile is compiled at once, or, if that goes on and on, with the next request. A header in another folder is
 * watched only after the first compilation. */
static bool update(struct run *r)
{
    bool news = false;
    for (unsigned i = 0; i < UPDATES_MAX && (i == 0 || dev_units_are_outdated(&r->units)); i++) {
        watch_all(r);
        news = dev_units_update(&r->units) || news;
        watch_all(r);
    }
    return news;
}

static void follow(struct run *r)
{
    bool news = update(r);
    bool is_due = dev_units_wait(&r->units) || !r->serves;
    if (!news && !is_due)
        return;
    if (!r->units.is_folder && !dev_units_are_fine(&r->units))
        r->serves = false;
    else if (is_due)
        news = swap(r) || news;
    if (news)
        dev_office_set_state(&r->office, r->office.state + 1);
}

static void look(struct run *r)
{
    if (!dev_watch_drain(r->watch) && !dev_units_are_unsure(&r->units))
        return;
    dev_units_retry(&r->units);
    follow(r);
}

/* ---- Questions of the server in front ---- */

static void write_page(struct run *r, const struct dev_unit *one, bool html, struct mk_buf *answer)
{
    const struct dev_page page = {.out = answer, .html = html};
    mk_buf_addf(answer, "page 500 text/%s; charset=utf-8\n", html ? "html" : "plain");
    if (!one || one->built.ok) {
        dev_page_begin(&page, "The service does not start",
                       MK_STR("It was compiled, but the server cannot load it."));
        dev_page_messages(&page, mk_buf_str(one && one->is_held ? &one->why : &r->why),
                          MK_STR("The server's words"));
    } else {
        dev_page_begin(&page, "The service is not compiled", MK_STR(""));
        dev_units_write_fault(one, &page);
    }
    dev_page_end(&page, r->office.state);
}

static struct dev_child *find_doc_place(struct run *r)
{
    for (size_t i = 0; i < DOCS_MAX; i++)
        if (!r->docs[i].pid || dev_child_status(&r->docs[i]) >= 0)
            return &r->docs[i];
    dev_child_stop(&r->docs[0], SIGKILL); /* they hang */
    return &r->docs[0];
}

/* The page about the routes comes from `monkey doc`, which loads the service: whatever that takes, nothing
 * waits for it but the browser. */
static bool start_doc(struct run *r, const struct dev_unit *one, int fd)
{
    static const mk_str head = MK_STR_INIT("page 200 text/html; charset=utf-8\n");
    struct dev_words words;
    dev_words_init(&words);
    dev_words_add(&words, mk_str_from_c(r->places.program));
    dev_words_add(&words, MK_STR("doc"));
    dev_words_add(&words, mk_str_from_c(one->path));
    bool ok = fcntl(fd, F_SETFL, 0) == 0 && send(fd, head.p, head.len, MSG_NOSIGNAL) == (ssize_t)head.len &&
              dev_child_start_to(find_doc_place(r), &words, fd);
    dev_words_free(&words);
    return ok;
}

/* "/.duda/doc" is about the only source, or that of "/"; "/shop/.duda/doc" about shop.c in a folder. */
static bool asks_for_doc(const struct dev_unit *one, mk_str target)
{
    mk_str place = mk_str_from_c(one->place);
    return mk_str_eq(mk_str_skip(target, place.len ? place.len + 1 : 0), MK_STR(DEV_DOC_PATH));
}

static bool on_ask(void *ctx, bool html, mk_str method, mk_str target, int fd, struct mk_buf *answer)
{
    struct run *r = ctx;
    (void)method;
    look(r);
    bool is_new = dev_units_want(&r->units, target);
    const struct dev_unit *one = dev_units_find(&r->units, target);
    if (is_new)
        follow(r);
    bool serves = r->serves && (!one || (one->built.ok && !one->is_held));
    if (serves && one && asks_for_doc(one, target))
        return !start_doc(r, one, fd);
    if (serves)
        mk_buf_add(answer, MK_STR("go\n"));
    else
        write_page(r, one, html, answer);
    return true;
}

static void on_fault(void *ctx, bool html, mk_str method, mk_str target, struct mk_buf *answer)
{
    struct run *r = ctx;
    const struct dev_page page = {.out = answer, .html = html};
    struct mk_buf about = mk_buf_growing(DEV_LINE_MAX);
    mk_str words = dev_servers_hear_end(&r->servers);
    mk_buf_addf(answer, "page 500 text/%s; charset=utf-8\n", html ? "html" : "plain");
    if (r->servers.hearing.has_crashed) {
        dev_frames_write_cause(&about, mk_buf_str(&r->servers.hearing.crash));
        mk_buf_addf(&about, " in the handler of %.*s %.*s", MK_STR_ARG(method), MK_STR_ARG(target));
        dev_page_begin(&page, "The service crashed", mk_buf_str(&about));
        dev_frames_write(&page, mk_buf_str(&r->servers.hearing.crash));
    } else {
        mk_buf_addf(&about, "%.*s %.*s got no response.", MK_STR_ARG(method), MK_STR_ARG(target));
        dev_page_begin(&page, "The service broke off", mk_buf_str(&about));
    }
    if (words.len) {
        dev_page_note(&page, MK_STR("What it said"));
        dev_page_text(&page, words);
    }
    dev_page_end(&page, r->office.state);
    mk_buf_free(&about);
}

static const struct dev_office_ops ops = {.ask = on_ask, .fault = on_fault};

/* ---- The loop ---- */

static void add_fd(struct run *r, size_t *n, int fd)
{
    if (fd >= 0)
        r->fds[(*n)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static size_t gather(struct run *r)
{
    size_t n = 0;
    add_fd(r, &n, r->ending);
    add_fd(r, &n, r->children);
    add_fd(r, &n, r->watch);
    n += dev_servers_poll(&r->servers, r->fds + n);
    return n + dev_office_poll(&r->office, r->fds + n);
}

static bool drain(int fd)
{
    struct signalfd_siginfo info;
    bool any = false;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        any = true;
    return any;
}

static void reap_docs(struct run *r)
{
    for (size_t i = 0; i < DOCS_MAX; i++)
        (void)dev_child_status(&r->docs[i]);
}

static int loop(struct run *r)
{
    for (;;) {
        size_t n = gather(r);
        if (poll(r->fds, n, -1) < 0 && errno != EINTR)
            return dev_order_complain(DEV_FAILED, "run", NULL, strerror(errno));
        if (drain(r->ending))
            return DEV_FINE;
        if (drain(r->children))
            reap_docs(r);
        dev_servers_hear(&r->servers);
        if (!dev_servers_look(&r->servers))
            return dev_order_complain(DEV_FAILED, "run", NULL, "the server in front has ended");
        look(r);
        dev_office_serve(&r->office);
    }
}

/* ---- Beginning and end ---- */

static int open_signals(const int *ours, size_t n)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, ours[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Two descriptors: children end all the time, and what waits for one of them must hear of Ctrl+C alone. */
static bool watch_signals(struct run *r)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP}, children[] = {SIGCHLD};
    (void)signal(SIGPIPE, SIG_IGN);
    r->ending = open_signals(ending, MK_LEN(ending));
    r->children = open_signals(children, MK_LEN(children));
    dev_child_end_with(r->ending);
    return r->ending >= 0 && r->children >= 0;
}

/* A number alone is a port of this machine, which others cannot reach. */
static void write_listen(char room[128], const char *port)
{
    bool is_number = port && *port && strspn(port, "0123456789") == strlen(port);
    if (!port)
        snprintf(room, 128, "127.0.0.1:2001");
    else
        snprintf(room, 128, "%s%.100s", is_number ? "127.0.0.1:" : "", port);
}

/* Who can be asked from other machines is called by its own name there. */
static void write_names(struct mk_buf *out, const char *listen, const char *names)
{
    char own[HOST_NAME_MAX + 1] = "";
    if (names)
        mk_buf_addf(out, "%s ", names);
    if (strncmp(listen, "127.", 4) != 0 && gethostname(own, sizeof own - 1) == 0)
        mk_buf_addf(out, "%s %s.local", own, own);
}

static bool open_all(struct run *r, const char *path, const char *port, const char *names)
{
    char desk[PATH_MAX], listen[128], room[NAMES_MAX + 1] = "";
    struct mk_buf all = mk_buf_fixed(room, NAMES_MAX);
    bool watches = watch_signals(r);
    r->watch = dev_watch_open();
    write_listen(listen, port);
    if (strpbrk(listen, " \t\r\n\"#$"))
        return dev_order_complain(false, "run", port, "this is no address");
    write_names(&all, listen, names);
    if (all.failed || strpbrk(room, "\r\n"))
        return dev_order_complain(false, "run", names, "these names are too long");
    if (r->watch < 0 || !watches || !dev_places_find(&r->places) ||
        !dev_units_init(&r->units, &r->places, path) || !dev_servers_init(&r->servers, &r->places) ||
        !dev_places_print(desk, "%s/desk", r->servers.folder) || !dev_office_open(&r->office, desk, &ops, r))
        return false;
    r->units.extra = r->extra;
    r->office.state = (uint64_t)time(NULL) * 1000;
    dev_compile_tidy(&r->places);
    if (r->units.is_folder)
        dev_watch_folder(r->watch, r->units.path);
    else /* what is saved while it is compiled is seen, too */
        dev_watch_folders_of(r->watch, mk_str_from_c(r->units.path));
    printf("Monkey runs %s at\n", path);
    fflush(stdout);
    return dev_servers_start_front(&r->servers, listen, room);
}

static int serve(struct run *r, const char *path, const char *port, const char *names)
{
    int code = DEV_FAILED;
    if (open_all(r, path, port, names)) {
        follow(r);
        code = loop(r);
    }
    dev_office_close(&r->office);
    for (size_t i = 0; i < DOCS_MAX; i++)
        dev_child_stop(&r->docs[i], SIGKILL);
    dev_servers_stop(&r->servers);
    dev_units_free(&r->units);
    mk_buf_free(&r->why);
    return code;
}

static int run(int argc, char **argv)
{
    const char *port = NULL, *names = NULL, *extra = NULL;
    const struct dev_option options[] = {
        {'p', "port", &port, NULL}, {'n', "names", &names, NULL}, {'i', "include", &extra, NULL}};
    struct dev_order order = {.usage = usage,
                              .help = help,
                              .options = options,
                              .n_options = MK_LEN(options),
                              .words_min = 1,
                              .words_max = 1};
    char path[PATH_MAX];
    int code;
    if (!dev_order_read(&order, argc, argv, &code))
        return code;
    if (extra && !realpath(extra, path))
        return dev_order_complain(DEV_FAILED, "run", extra, strerror(errno));
    struct run *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return dev_order_complain(DEV_FAILED, "run", NULL, strerror(ENOMEM));
    r->extra = extra ? path : NULL;
    r->office.fd = r->watch = r->ending = r->children = -1;
    for (size_t i = 0; i < DOCS_MAX; i++)
        r->docs[i] = (struct dev_child){.out = -1, .err = -1};
    code = serve(r, order.words[0], port, names);
    mk_mem_free(r);
    return code;
}

const struct mk_verb dev_verb_run = {
    .name = "run",
    .args = "SOURCE.c|FOLDER",
    .help = "Compile and serve a service, and follow its changes.",
    .run = run,
};
