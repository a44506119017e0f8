/* SPDX-License-Identifier: Apache-2.0 */
/* response_kinds CERTIFICATE KEY FILE: serves every kind of response of a handler, on one port without TLS and one
 * with it, in two threads. test_response_kinds.py requests all of them over each protocol. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <monkey/request_ref.h>
#include <monkey/server.h>
#include <monkey/sse_stream.h>
#include <monkey/websocket.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static enum mk_verdict say(struct mk_response *response,
                                                                 const char *form, ...)
{
    char buffer[128];
    va_list list;
    va_start(list, form);
    int len = vsnprintf(buffer, sizeof buffer, form, list);
    va_end(list);
    mk_response_set_body(response, mk_str_of(buffer, (size_t)len));
    return MK_DONE;
}

static enum mk_verdict at_once(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    return say(response, "version %u, user %" PRIu64 "\n", mk_request_version(request),
               mk_server_param(request, "id")->as_uint);
}

/* ---- Later responses, from another thread ---- */

static void set_result(struct mk_request *request, void *ctx)
{
    if (request)
        mk_request_set_data(request, ctx);
}

static void *work(void *ctx)
{
    static char result[] = "from another thread\n";
    struct mk_request_ref *t = ctx;
    (void)mk_request_ref_resume(t, set_result, result);
    mk_request_ref_free(t);
    return NULL;
}

static const char key;

static enum mk_verdict later(struct mk_request *request, struct mk_response *response, void *data)
{
    const char *result = mk_request_data(request);
    pthread_t thread;
    (void)data;
    if (result) {
        mk_response_set_body_nocopy(response, mk_str_from_c(result));
        return MK_DONE;
    }
    if (mk_request_attached(request, &key))
        return MK_WAIT;
    struct mk_request_ref *t = mk_request_ref_new(request);
    if (!t || mk_request_attach(request, &key, t, NULL) || pthread_create(&thread, NULL, work, t)) {
        mk_request_ref_free(t);
        return MK_ERROR;
    }
    pthread_detach(thread);
    return MK_WAIT;
}

/* ---- Body sources with back-pressure ---- */

static atomic_ullong n_pulled, n_closed;

struct numbers {
    uint64_t at, end;
};

static ssize_t pull(void *ctx, char *buffer, size_t cap)
{
    struct numbers *n = ctx;
    size_t len = n->end - n->at < cap ? (size_t)(n->end - n->at) : cap;
    for (size_t i = 0; i < len; i++)
        buffer[i] = (char)('0' + (n->at + i) % 10);
    n->at += len;
    atomic_fetch_add(&n_pulled, len);
    return (ssize_t)len;
}

static void close_numbers(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&n_closed, 1);
}

static enum mk_verdict source(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = pull, .close = close_numbers};
    struct numbers *n = mk_request_alloc(request, sizeof *n);
    (void)data;
    if (!n)
        return MK_ERROR;
    *n = (struct numbers){.end = mk_server_param(request, "n")->as_uint};
    return mk_response_set_body_source(response, &ops, n, MK_LENGTH_UNKNOWN) ? MK_ERROR : MK_DONE;
}

static enum mk_verdict report_counters(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    return say(response, "%llu %llu", atomic_load(&n_pulled), atomic_load(&n_closed));
}

/* ---- Bodies that the response frees ---- */

static atomic_ullong n_freed;

static void free_body(void *data)
{
    free(data); /* the sanitizer would report a second call */
    atomic_fetch_add(&n_freed, 1);
}

/* /owned/BYTES/HOW: a body of BYTES bytes that the response frees. HOW is `200`, another status, `replaced`
 * or `failed`. */
static enum mk_verdict owned(struct mk_request *request, struct mk_response *response, void *data)
{
    size_t len = (size_t)mk_server_param(request, "n")->as_uint;
    mk_str how = mk_server_param(request, "how")->value;
    char *bytes = malloc(len + 1);
    (void)data;
    if (!bytes)
        return MK_ERROR;
    memset(bytes, 'x', len + 1);
    if (mk_response_set_body_owned(response, mk_str_of(bytes, len), free_body, bytes))
        return MK_ERROR;
    if (mk_str_eq(how, MK_STR("replaced")))
        return say(response, "another body\n");
    if (mk_str_eq(how, MK_STR("failed"))) {
        mk_response_set_status(response, 503);
        return MK_ERROR;
    }
    mk_response_set_status(response, (unsigned)strtoul(how.p, NULL, 10));
    return MK_DONE;
}

static enum mk_verdict report_freed(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    return say(response, "%llu", atomic_load(&n_freed));
}

/* ---- A file ---- */

static enum mk_verdict file(struct mk_request *request, struct mk_response *response, void *data)
{
    struct stat st;
    (void)request;
    int fd = open(data, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        mk_response_set_status(response, 404);
        return MK_ERROR;
    }
    return mk_response_set_body_file(response, fd, 0, (uint64_t)st.st_size) ? MK_ERROR : MK_DONE;
}

/* ---- Request bodies as they arrive ---- */

struct sum {
    uint64_t bytes, sum;
};

static enum mk_verdict add_up(struct mk_request *request, struct mk_response *response, void *data)
{
    char buffer[16384];
    struct sum *s = mk_request_data(request);
    ssize_t n;
    (void)data;
    if (!s) {
        if (!(s = mk_request_alloc(request, sizeof *s)))
            return MK_ERROR;
        *s = (struct sum){0};
        mk_request_set_data(request, s);
    }
    while ((n = mk_request_read(request, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            s->sum += (unsigned char)buffer[i];
        s->bytes += (uint64_t)n;
    }
    return n == -EAGAIN ? MK_WAIT
           : n < 0      ? MK_ERROR
                        : say(response, "%" PRIu64 " %" PRIu64, s->bytes, s->sum);
}

/* ---- WebSockets and server-sent events ---- */

static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str text)
{
    (void)ctx;
    (void)mk_websocket_send(s, kind, text);
}

static void on_left(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason)
{
    (void)ctx, (void)s, (void)code, (void)reason;
}

static enum mk_verdict echo(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_websocket_ops ops = {.on_message = on_message, .on_close = on_left};
    static const struct mk_websocket_options options = {.ops = &ops};
    struct mk_websocket *s;
    return mk_websocket_open(request, response, &options, data, &s) ? MK_ERROR : MK_DONE;
}

static void on_over(void *ctx, struct mk_sse_stream *s)
{
    (void)ctx, (void)s;
}

static enum mk_verdict events(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_sse_stream_ops ops = {.on_close = on_over};
    static const struct mk_sse_stream_options options = {.ops = &ops};
    static const struct mk_sse_event first = {.data = MK_STR_INIT("one")},
                                     second = {.name = MK_STR_INIT("more"), .data = MK_STR_INIT("two")};
    struct mk_sse_stream *s;
    if (mk_sse_stream_open(request, response, &options, data, &s))
        return MK_ERROR;
    (void)mk_sse_stream_send(s, &first);
    (void)mk_sse_stream_send(s, &second);
    mk_sse_stream_end(s);
    return MK_DONE;
}

/* ---- The program ---- */

static void print(void *ctx, enum mk_log_level level, mk_str text)
{
    (void)ctx, (void)level;
    fprintf(stderr, "%.*s\n", MK_STR_ARG(text));
}

static int set_up(struct mk_server *s, char **argv)
{
    static const struct {
        const char *what;
        mk_server_fn *fn;
    } routes[] = {
        {"GET /users/:id<uint>", at_once},
        {"GET /later", later},
        {"GET /source/:n<uint>", source},
        {"GET /owned/:n<uint>/:how", owned},
        {"GET /freed", report_freed},
        {"GET /pulled", report_counters},
        {"POST /sum", add_up},
        {"GET /echo", echo},
        {"GET /events", events},
        {"GET /file", file},
    };
    char pair[8192];
    snprintf(pair, sizeof pair, "%s %s", argv[1], argv[2]);
    int e = mk_server_set(s, "SERVER", "Certificate", pair);
    if (!e)
        e = mk_server_set(s, "PLUGINS", "Load", "websocket");
    for (size_t i = 0; i < sizeof routes / sizeof *routes && !e; i++)
        e = mk_server_add_route(s, routes[i].what, routes[i].fn, argv[3]);
    return e;
}

int main(int argc, char **argv)
{
    const struct mk_server_options options = {.size = sizeof options, .on_log = print};
    unsigned clear, encrypted;
    int number;
    sigset_t set;
    struct mk_server *s = argc == 4 ? mk_server_new(&options) : NULL;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (!s || set_up(s, argv) || mk_server_listen(s, "127.0.0.1:0", &clear) ||
        mk_server_listen(s, "127.0.0.1:0 tls", &encrypted) || mk_server_start(s, 2)) {
        fprintf(stderr, "response_kinds: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("Serves at\n  http://127.0.0.1:%u/\n  https://127.0.0.1:%u/\n", clear, encrypted);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_free(s);
    return 0;
}
