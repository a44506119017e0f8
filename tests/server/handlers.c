/* SPDX-License-Identifier: Apache-2.0 */
/* A server with handlers for features that the program's own handlers do not use: reading bodies, generating
 * bodies, waiting. The results hold for any handler, because these use only the public headers. The program
 * prints its port. `test_handlers BYTES` sets the limit for unread bodies. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/num.h"
#include "connection/acceptor.h"
#include "connection/conn_manager.h"
#include "connection/http2.h"
#include "os/fd.h"
#include "os/sock.h"

enum { ROOM = 4096, WAIT_MS = 100, PIECE_MAX = 1000 };

static struct mk_loop loop;

/* ---- Shared helpers ---- */

/* Returns the number after the '?', or `otherwise`. */
static uint64_t number(const struct mk_request *request, uint64_t otherwise)
{
    uint64_t n;
    return mk_num_parse(mk_request_query(request), &n) ? n : otherwise;
}

static enum mk_verdict refuse(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

/* Responds to an error of mk_request_read(). */
static enum mk_verdict refuse_read(struct mk_response *response, ssize_t error)
{
    return refuse(response, error == -EMSGSIZE ? 413 : error == -EBADMSG ? 400 : 500);
}

static enum mk_verdict answer(struct mk_response *response, const char *text)
{
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_body(response, mk_str_from_c(text)) == 0 ? MK_DONE : refuse(response, 503);
}

/* ---- echo: streams the request body back, with at most one piece in memory ---- */

static ssize_t pull_echo(void *ctx, char *buffer, size_t cap)
{
    return mk_request_read(ctx, buffer, cap < ROOM ? cap : ROOM);
}

static const struct mk_body_source_ops echo_ops = {.read = pull_echo};

static enum mk_verdict echo(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    mk_response_set_body_source(response, &echo_ops, request, mk_request_length(request));
    return MK_DONE;
}

/* ---- sink: reads everything, then returns its length and sum ---- */

struct sink {
    uint64_t len, sum;
};

static enum mk_verdict sink(struct mk_request *request, struct mk_response *response, void *data)
{
    struct sink *s = mk_request_data(request);
    char buffer[ROOM];
    ssize_t n;
    (void)data;
    if (!s) {
        s = mk_request_alloc(request, sizeof *s);
        if (!s)
            return refuse(response, 503);
        *s = (struct sink){0};
        mk_request_set_data(request, s);
    }
    while ((n = mk_request_read(request, buffer, sizeof buffer)) > 0) {
        s->len += (uint64_t)n;
        for (ssize_t i = 0; i < n; i++)
            s->sum += (unsigned char)buffer[i];
    }
    if (n == -EAGAIN)
        return MK_WAIT;
    if (n < 0)
        return refuse_read(response, n);
    snprintf(buffer, sizeof buffer, "%" PRIu64 " %" PRIu64 "\n", s->len, s->sum);
    return answer(response, buffer);
}

/* ---- slow: waits for a timer. never: waits forever ---- */

struct wait {
    struct mk_timer timer;
    struct mk_request *request;
    bool over;
};

static void on_due(struct mk_timer *t)
{
    struct wait *w = MK_CONTAINER(t, struct wait, timer);
    w->over = true;
    mk_request_resume(w->request);
}

static void stop_waiting(void *data)
{
    struct wait *w = data;
    mk_timer_stop(&w->timer);
}

static struct wait *start_waiting(struct mk_request *request, uint32_t ms)
{
    struct wait *w = mk_request_alloc(request, sizeof *w);
    if (!w || mk_request_add_cleanup(request, stop_waiting, w) != 0)
        return NULL;
    *w = (struct wait){.request = request};
    mk_timer_init(&w->timer, on_due);
    mk_loop_set_timer(&loop, &w->timer, ms);
    return w;
}

static enum mk_verdict slow(struct mk_request *request, struct mk_response *response, void *data)
{
    struct wait *w = mk_request_data(request);
    (void)data;
    if (!w)
        mk_request_set_data(request, w = start_waiting(request, (uint32_t)number(request, WAIT_MS)));
    if (!w)
        return refuse(response, 503);
    return w->over ? answer(response, "at last\n") : MK_WAIT;
}

static enum mk_verdict never(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)response, (void)data;
    return MK_WAIT;
}

/* ---- thread: waits for another thread, which resumes the request ---- */

struct elsewhere {
    struct mk_offload_job job;
    struct mk_request *request; /* NULL once the request has ended */
    int result;                 /* written by the thread; valid once `delivered` is set */
    bool delivered;             /* the loop has received the result */
};

static struct mk_offload helper;

static void compute(struct mk_offload_job *job)
{
    struct elsewhere *e = MK_CONTAINER(job, struct elsewhere, job);
    e->result = 6 * 7;
}

static void computed(struct mk_offload_job *job)
{
    struct elsewhere *e = MK_CONTAINER(job, struct elsewhere, job);
    e->delivered = true;
    if (e->request)
        mk_request_resume(e->request);
    else
        mk_mem_free(e);
}

/* The request may end before the job does: the one that ends last frees the state. */
static void abandon(void *data)
{
    struct elsewhere *e = data;
    if (e->delivered)
        mk_mem_free(e);
    else
        e->request = NULL;
}

static enum mk_verdict thread(struct mk_request *request, struct mk_response *response, void *data)
{
    struct elsewhere *e = mk_request_data(request);
    char text[32];
    (void)data;
    if (e && e->delivered) {
        snprintf(text, sizeof text, "%d\n", e->result);
        return answer(response, text);
    }
    if (e)
        return MK_WAIT;
    e = mk_mem_zalloc(1, sizeof *e);
    if (!e || mk_request_add_cleanup(request, abandon, e) != 0) {
        mk_mem_free(e);
        return refuse(response, 503);
    }
    e->request = request;
    e->job = (struct mk_offload_job){.run = compute, .done = computed};
    mk_request_set_data(request, e);
    return mk_offload_submit(&helper, &e->job) ? MK_WAIT : refuse(response, 503);
}

/* ---- known, unknown, broken: N bytes of 'x', in pieces ---- */

struct letters {
    uint64_t left;
    bool breaks;
};

static ssize_t pull_letters(void *ctx, char *buffer, size_t cap)
{
    struct letters *l = ctx;
    size_t n = cap < PIECE_MAX ? cap : PIECE_MAX;
    if (l->left < n)
        n = (size_t)l->left;
    if (n == 0)
        return l->breaks ? -EIO : 0;
    memset(buffer, 'x', n);
    l->left -= n;
    return (ssize_t)n;
}

static unsigned n_closed;

static void close_letters(void *ctx)
{
    (void)ctx;
    n_closed++;
}

static const struct mk_body_source_ops letters_ops = {.read = pull_letters, .close = close_letters};

static enum mk_verdict send_letters(struct mk_request *request, struct mk_response *response, bool known,
                                    bool breaks)
{
    struct letters *l = mk_request_alloc(request, sizeof *l);
    if (!l)
        return refuse(response, 503);
    *l = (struct letters){.left = number(request, 10000), .breaks = breaks};
    int64_t length = known ? (int64_t)l->left + breaks : MK_LENGTH_UNKNOWN;
    mk_response_set_body_source(response, &letters_ops, l, length);
    return MK_DONE;
}

static enum mk_verdict known(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    return send_letters(request, response, true, false);
}

static enum mk_verdict unknown(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    return send_letters(request, response, false, false);
}

static enum mk_verdict broken(struct mk_request *request, struct mk_response *response, void *data)
{
    bool with_length = data != NULL;
    return send_letters(request, response, with_length, true);
}

static enum mk_verdict closed(struct mk_request *request, struct mk_response *response, void *data)
{
    char text[32];
    (void)request, (void)data;
    snprintf(text, sizeof text, "%u\n", n_closed);
    return answer(response, text);
}

/* ---- mad: a head too large for any buffer. early: a response before the request body. error: an error
 * without a status ---- */

static enum mk_verdict mad(struct mk_request *request, struct mk_response *response, void *data)
{
    char value[ROOM];
    (void)request, (void)data;
    memset(value, 'm', sizeof value);
    for (int i = 0; i < 20; i++)
        mk_response_add_header(response, MK_STR("X-Mad"), mk_str_of(value, sizeof value));
    return answer(response, "mad\n");
}

static enum mk_verdict early(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    return answer(response, "early\n");
}

static enum mk_verdict error(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)response, (void)data;
    return MK_ERROR;
}

/* ---- The server itself ---- */

/* clang-format off */
#define HANDLER(fn) {.name = #fn, .handle = fn}
/* clang-format on */

static const struct mk_handler handlers[] = {
    HANDLER(echo),    HANDLER(sink),   HANDLER(slow),   HANDLER(never), HANDLER(thread), HANDLER(known),
    HANDLER(unknown), HANDLER(broken), HANDLER(closed), HANDLER(mad),   HANDLER(early),  HANDLER(error),
};

static struct mk_conn_manager_limits limits = {
    .head = {.head_max = 8192, .target_max = 4096, .fields_max = 64},
    .h2 = {.on = true, .streams_max = 100, .unread_max = 16777216, .abuse_budget = 1000},
    .request.content_max = 2147483648,
    .requests_max = 0,
    .connections_max = 1000,
    .keep_alive = true,
    .overcapacity = MK_OVERCAPACITY_RESIST,
    .head_ms = 10000,
    .idle_ms = 10000,
    .linger_ms = 2000,
    .request.handler_ms = 1500,
    .request.rate_ms = 2000,
    .request.rate_bytes = 100,
};

static struct mk_route routes[MK_LEN(handlers) + 1];

static void fill_routes(void)
{
    static char patterns[MK_LEN(handlers)][32];
    static bool with_length = true;
    for (size_t i = 0; i < MK_LEN(handlers); i++) {
        snprintf(patterns[i], sizeof patterns[i], "/%s", handlers[i].name);
        routes[i] =
            (struct mk_route){.pattern = {.text = mk_str_from_c(patterns[i]), .kind = MK_PATTERN_EXACT},
                              .handler = &handlers[i]};
    }
    struct mk_route *last = &routes[MK_LEN(handlers)];
    *last = (struct mk_route){.pattern = {.text = MK_STR("/broken-known"), .kind = MK_PATTERN_EXACT},
                              .data = &with_length};
    for (size_t i = 0; i < MK_LEN(handlers); i++)
        if (strcmp(handlers[i].name, "broken") == 0)
            last->handler = &handlers[i];
}

static int signal_fd;

static void on_signal(struct mk_fd_watch *w, uint32_t events)
{
    (void)w, (void)events;
    mk_loop_stop(&loop);
}

static void end_on_sigterm(void)
{
    static struct mk_fd_watch watch = {.on_ready = on_signal};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    MK_ASSERT(signal_fd >= 0 && mk_loop_add(&loop, signal_fd, &watch, EPOLLIN) == 0);
}

static int listen_somewhere(void)
{
    struct mk_sockaddr at;
    struct mk_sock_options o = {.backlog = 64};
    int fd = -1;
    MK_ASSERT(mk_sockaddr_parse(MK_STR("127.0.0.1:0"), MK_STR(""), &at) == 0);
    MK_ASSERT(mk_sock_listen(&at, &o, &fd) == 0 && mk_sockaddr_getsockname(fd, &at) == 0);
    printf("  http://127.0.0.1:%u/\n", mk_sockaddr_port(&at));
    fflush(stdout);
    return fd;
}

static void print_record(const struct mk_access_record *record, void *data)
{
    (void)data;
    printf("%u %s %" PRIu64 " %.*s\n", record->status, mk_outcome_name(record->outcome), record->content_sent,
           MK_STR_ARG(mk_request_path(record->request)));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct mk_counters counters;
    static struct mk_vhost host;
    struct mk_vhosts hosts = {.fallback = &host};
    struct mk_web_ctx web = {.hosts = &hosts, .on_record = print_record};
    struct mk_file_cache_limits files = {.files = 16, .memory = 65536, .small = 4096};
    struct mk_conn_manager service;
    struct mk_acceptor acceptor;
    uint64_t unread_max;
    if (argc > 1 && mk_num_parse(mk_str_from_c(argv[1]), &unread_max))
        limits.h2.unread_max = (uint32_t)unread_max;
    fill_routes();
    host.routes = routes;
    host.n_routes = MK_LEN(routes);
    host.root.fd = -1;
    signal(SIGPIPE, SIG_IGN);
    MK_ASSERT(mk_loop_init(&loop) == 0 && mk_file_cache_init(&web.files, &files) == 0);
    MK_ASSERT(mk_offload_init(&helper, &loop) == 0);
    MK_ASSERT(mk_conn_manager_init(&service, &loop, &web, &limits, &counters, MK_STR("Monkey/test")) == 0);
    mk_conn_manager_set_http2(&service, mk_conn_manager_get_http2_module());
    end_on_sigterm();
    int fd = listen_somewhere();
    MK_ASSERT(mk_acceptor_start(&acceptor, &service, fd) == 0);
    MK_ASSERT(mk_loop_run(&loop) == 0);
    mk_acceptor_stop(&acceptor);
    mk_conn_close_all(&service, MK_OUTCOME_SHUTDOWN);
    mk_loop_run_tasks(&loop);
    mk_offload_fini(&helper);
    mk_conn_manager_fini(&service);
    mk_file_cache_fini(&web.files);
    mk_loop_fini(&loop);
    close(signal_fd);
    close(fd);
    return 0;
}
