/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers for every kind of response: text, a file, a range of a file, a body source, responses that wait
 * for a descriptor, a timer, a child process or another thread, and every verdict. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static enum mk_verdict refuse(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict answer(struct mk_response *response, mk_str text)
{
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_body(response, text) ? refuse(response, 503) : MK_DONE;
}

static uint64_t number_of(const struct mk_request *request)
{
    uint64_t n = 0;
    return mk_num_parse(mk_request_query(request), &n) ? n : 0;
}

/* ---- Without waiting ---- */

static enum mk_verdict text(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request;
    return answer(response, mk_str_from_c(data));
}

static bool bind_text(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    char *copy = mk_conf_ctx_alloc(ctx, words.len + 1);
    if (!copy || words.len == 0)
        return false;
    if (mk_str_eq(words, MK_STR("forbidden"))) {
        mk_conf_ctx_error(ctx, words, "`%.*s` is not to be said", MK_STR_ARG(words));
        return false;
    }
    memcpy(copy, words.p, words.len);
    *data = copy;
    return true;
}

/* /verdict?follow: WAIT until the client disconnects. /verdict?N: 1 NEXT, 2 DONE, 3 WAIT, 4 ERROR with
 * status 418, anything else is invalid. */
static enum mk_verdict verdict(struct mk_request *request, struct mk_response *response, void *data)
{
    uint64_t n = number_of(request);
    (void)data;
    if (mk_str_eq(mk_request_query(request), MK_STR("follow"))) {
        mk_request_cancel_on_disconnect(request);
        return MK_WAIT;
    }
    if (n == MK_ERROR)
        mk_response_set_status(response, 418);
    return (enum mk_verdict)n;
}

/* /file/NAME: the file from the third byte on, at most ?N bytes. */
static enum mk_verdict file(struct mk_request *request, struct mk_response *response, void *data)
{
    struct stat st;
    mk_str path = mk_str_skip(mk_request_path(request), sizeof "/file" - 1);
    int fd = mk_request_open(request, path);
    (void)data;
    if (fd < 0)
        return refuse(response, fd == -ENOENT ? 404 : 403);
    if (fstat(fd, &st) < 0 || st.st_size < 2) {
        close(fd);
        return refuse(response, 416);
    }
    uint64_t len = (uint64_t)st.st_size - 2, most = number_of(request);
    mk_response_add_header(response, MK_STR("Content-Type"), mk_request_media_type(request, path));
    mk_response_add_header(response, MK_STR("X-File"), mk_request_translate_path(request, path));
    return mk_response_set_body_file(response, fd, 2, most && most < len ? most : len) ? refuse(response, 503)
                                                                                       : MK_DONE;
}

/* /count?N: N bytes from a body source; a minus at the end of the path makes the length unknown. */
struct counter {
    uint64_t left;
    struct mk_worker *worker;
};

static ssize_t count(void *ctx, char *buffer, size_t cap)
{
    struct counter *c = ctx;
    size_t n = c->left < cap ? (size_t)c->left : cap;
    for (size_t i = 0; i < n; i++)
        buffer[i] = (char)('0' + (c->left - i) % 10);
    c->left -= n;
    return (ssize_t)n;
}

static void count_closed(void *ctx)
{
    struct counter *c = ctx;
    mk_worker_log(c->worker, MK_LOG_INFO, "response_kinds: source closed, %llu left",
                  (unsigned long long)c->left);
}

static const struct mk_body_source_ops count_ops = {.read = count, .close = count_closed};

static enum mk_verdict counted(struct mk_request *request, struct mk_response *response, void *data)
{
    struct counter *c = mk_request_alloc(request, sizeof *c);
    (void)data;
    if (!c)
        return refuse(response, 503);
    *c = (struct counter){.left = number_of(request), .worker = mk_request_worker(request)};
    bool unknown = mk_str_ends(mk_request_path(request), MK_STR("-"));
    int64_t len = unknown ? MK_LENGTH_UNKNOWN : (int64_t)c->left;
    return mk_response_set_body_source(response, &count_ops, c, len) ? refuse(response, 503) : MK_DONE;
}

/* /raw: sends a raw response including its status line. */
static ssize_t pull_raw(void *ctx, char *buffer, size_t cap)
{
    mk_str *left = ctx;
    size_t n = left->len < cap ? left->len : cap;
    memcpy(buffer, left->p, n);
    *left = mk_str_skip(*left, n);
    return (ssize_t)n;
}

static const struct mk_body_source_ops raw_ops = {.read = pull_raw};

static enum mk_verdict raw(struct mk_request *request, struct mk_response *response, void *data)
{
    mk_str *left = mk_request_alloc(request, sizeof *left);
    (void)data;
    if (!left)
        return refuse(response, 503);
    *left = MK_STR("HTTP/1.1 299 Mine\r\nX-Raw: yes\r\nContent-Length: 3\r\n\r\nraw");
    return mk_response_set_raw_source(response, &raw_ops, left) ? refuse(response, 503) : MK_DONE;
}

/* ---- Request bodies ---- */

struct sum {
    uint64_t bytes, sum;
};

static enum mk_verdict sum(struct mk_request *request, struct mk_response *response, void *data)
{
    struct sum *s = mk_request_data(request);
    char buffer[4096];
    ssize_t n;
    (void)data;
    if (!s) {
        s = mk_request_alloc(request, sizeof *s);
        if (!s)
            return refuse(response, 503);
        *s = (struct sum){0, 0};
        mk_request_set_data(request, s);
    }
    while ((n = mk_request_read(request, buffer, sizeof buffer)) > 0) {
        s->bytes += (uint64_t)n;
        for (ssize_t i = 0; i < n; i++)
            s->sum += (unsigned char)buffer[i];
    }
    if (n == -EAGAIN)
        return MK_WAIT;
    if (n < 0)
        return refuse(response, n == -EMSGSIZE ? 413 : 400);
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_addf(&b, "%llu %llu\n", (unsigned long long)s->bytes, (unsigned long long)s->sum);
    return answer(response, mk_buf_str(&b));
}

/* ---- Waiting ---- */

/* State of any pending wait; it lives as long as the request. */
struct wait {
    struct mk_request *request;
    struct mk_timer timer;
    struct mk_watcher *watcher;
    struct mk_subprocess *child;
    int fd;
    bool over;
    char text[256];
    size_t len;
    int status;
};

static void end_wait(void *data)
{
    struct wait *w = data;
    mk_timer_stop(&w->timer);
    mk_watcher_free(w->watcher);
    mk_subprocess_kill(w->child);
    if (w->fd >= 0)
        close(w->fd);
}

static struct wait *start_wait(struct mk_request *request)
{
    struct wait *w = mk_request_alloc(request, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct wait){.request = request, .fd = -1};
    mk_request_set_data(request, w);
    return mk_request_add_cleanup(request, end_wait, w) ? NULL : w;
}

static void finish(struct wait *w)
{
    w->over = true;
    mk_request_resume(w->request);
}

static enum mk_verdict respond_result(const struct wait *w, struct mk_response *response)
{
    char buffer[320];
    struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_addf(&b, "%.*s%d\n", (int)w->len, w->text, w->status);
    return answer(response, mk_buf_str(&b));
}

static void on_due(struct mk_timer *t)
{
    finish(MK_CONTAINER(t, struct wait, timer));
}

/* /timer?MS */
static enum mk_verdict timer(struct mk_request *request, struct mk_response *response, void *data)
{
    struct wait *w = mk_request_data(request);
    (void)data;
    if (w)
        return w->over ? respond_result(w, response) : MK_WAIT;
    w = start_wait(request);
    if (!w)
        return refuse(response, 503);
    mk_timer_init(&w->timer, on_due);
    mk_timer_set(&w->timer, mk_request_worker(request), (uint32_t)number_of(request));
    return MK_WAIT;
}

static ssize_t read_all(struct wait *w)
{
    ssize_t n;
    while ((n = read(w->fd, w->text + w->len, sizeof w->text - w->len)) > 0)
        w->len += (size_t)n;
    return n;
}

static void on_readable(void *ctx, unsigned which)
{
    struct wait *w = ctx;
    (void)which;
    if (read_all(w) == 0 && !w->child)
        finish(w);
}

/* Watches the read end of a pipe; returns the write end, or -1. */
static int watch_pipe(struct wait *w)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    w->fd = ends[0];
    w->watcher = mk_watcher_new(mk_request_worker(w->request), w->fd, MK_READABLE, on_readable, w);
    if (w->watcher)
        return ends[1];
    close(ends[1]);
    return -1;
}

static void *write_slowly(void *arg)
{
    int fd = *(int *)arg;
    mk_mem_free(arg);
    for (int i = 0; i < 3; i++) {
        usleep(10000);
        if (write(fd, "drop ", 5) != 5)
            break;
    }
    close(fd);
    return NULL;
}

/* /fd: waits until another thread writes into a pipe. */
static enum mk_verdict descriptor(struct mk_request *request, struct mk_response *response, void *data)
{
    struct wait *w = mk_request_data(request);
    pthread_t thread;
    (void)data;
    if (w)
        return w->over ? respond_result(w, response) : MK_WAIT;
    w = start_wait(request);
    int *fd = mk_mem_alloc(sizeof *fd);
    if (!w || !fd || (*fd = watch_pipe(w)) < 0 || pthread_create(&thread, NULL, write_slowly, fd)) {
        mk_mem_free(fd);
        return refuse(response, 503);
    }
    pthread_detach(thread);
    return MK_WAIT;
}

static void on_end(void *ctx, int status)
{
    struct wait *w = ctx;
    w->child = NULL; /* the process has exited, but its output may still be in the pipe */
    w->status = status;
    (void)read_all(w);
    finish(w);
}

/* /child?N: a child process writes a line and exits with status N. */
static enum mk_verdict child(struct mk_request *request, struct mk_response *response, void *data)
{
    struct wait *w = mk_request_data(request);
    char script[64];
    (void)data;
    if (w)
        return w->over ? respond_result(w, response) : MK_WAIT;
    w = start_wait(request);
    int fd = w ? watch_pipe(w) : -1;
    if (fd < 0)
        return refuse(response, 503);
    snprintf(script, sizeof script, "echo child $X; exit %llu", (unsigned long long)number_of(request));
    const char *argv[] = {"/bin/sh", "-c", script, NULL}, *envp[] = {"X=of mine", NULL};
    struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = fd, .err = -1};
    w->child = mk_subprocess_start(mk_request_worker(request), &o, on_end, w);
    close(fd);
    return w->child ? MK_WAIT : refuse(response, 503);
}

/* /aside?N: another thread computes the sum of all numbers up to N. `ctx` may outlive the request. */
struct work {
    struct mk_request *request; /* NULL: the request has ended */
    uint64_t n, sum;
    bool over;
};

static void add_up(void *ctx)
{
    struct work *k = ctx;
    for (uint64_t i = 1; i <= k->n; i++)
        k->sum += i;
}

static void added_up(void *ctx)
{
    struct work *k = ctx;
    k->over = true;
    if (k->request)
        mk_request_resume(k->request);
    else
        mk_mem_free(k);
}

static void leave_work(void *ctx)
{
    struct work *k = ctx;
    k->request = NULL;
    if (k->over)
        mk_mem_free(k);
}

static enum mk_verdict aside(struct mk_request *request, struct mk_response *response, void *data)
{
    struct work *k = mk_request_data(request);
    char buffer[32];
    (void)data;
    if (k && !k->over)
        return MK_WAIT;
    if (k) {
        struct mk_buf b = mk_buf_fixed(buffer, sizeof buffer);
        mk_buf_addf(&b, "%llu\n", (unsigned long long)k->sum);
        return answer(response, mk_buf_str(&b));
    }
    k = mk_mem_zalloc(1, sizeof *k);
    if (!k)
        return refuse(response, 503);
    *k = (struct work){.request = request, .n = number_of(request)};
    if (mk_worker_offload(mk_request_worker(request), add_up, added_up, k)) {
        mk_mem_free(k);
        return refuse(response, 503);
    }
    mk_request_set_data(request, k);
    return mk_request_add_cleanup(request, leave_work, k) ? refuse(response, 503) : MK_WAIT;
}

/* ---- Filters ---- */

static ssize_t pull_upper(void *ctx, struct mk_filter_next *next, char *buffer, size_t cap)
{
    ssize_t n = mk_filter_next_read(next, buffer, cap);
    (void)ctx;
    for (ssize_t i = 0; i < n; i++)
        if (buffer[i] >= 'a' && buffer[i] <= 'z')
            buffer[i] = (char)(buffer[i] - 'a' + 'A');
    return n;
}

static const struct mk_filter_ops upper_ops = {.read = pull_upper};

/* Doubles every byte, so that the length of the body changes. */
static ssize_t pull_double(void *ctx, struct mk_filter_next *next, char *buffer, size_t cap)
{
    (void)ctx;
    if (cap < 2)
        return -EIO;
    ssize_t n = mk_filter_next_read(next, buffer, cap / 2);
    for (ssize_t i = n - 1; i >= 0; i--)
        buffer[2 * i] = buffer[2 * i + 1] = buffer[i];
    return n > 0 ? 2 * n : n;
}

static const struct mk_filter_ops double_ops = {.read = pull_double};

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    mk_str wanted = mk_request_header(request, MK_STR("X-Filter"));
    (void)host_data;
    if (!mk_response_will_send_body(request, response))
        return;
    if (mk_str_eq(wanted, MK_STR("upper")) || mk_str_eq(wanted, MK_STR("both")))
        mk_response_add_filter(response, &upper_ops, NULL, mk_response_length(response));
    if (mk_str_eq(wanted, MK_STR("double")) || mk_str_eq(wanted, MK_STR("both")))
        mk_response_add_filter(response, &double_ops, NULL, MK_LENGTH_UNKNOWN);
}

/* ---- Rewriting ---- */

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    mk_str to = mk_request_header(request, MK_STR("X-Rewrite"));
    (void)host_data;
    mk_response_add_header(response, MK_STR("X-Asked"), MK_STR("yes"));
    if (!to.p || mk_str_eq(to, mk_request_path(request)))
        return MK_NEXT;
    return mk_request_rewrite(request, to) ? refuse(response, 400) : MK_REWRITTEN;
}

static int load(struct mk_config *config, void **data)
{
    (void)data;
    mk_config_allow_program(config, NULL, NULL, &(struct mk_program){.path = "/"});
    return 0;
}

#define HANDLER(word, fn) static const struct mk_handler word##_handler = {.name = #word, .handle = fn}
HANDLER(verdict, verdict);
HANDLER(file, file);
HANDLER(count, counted);
HANDLER(raw, raw);
HANDLER(sum, sum);
HANDLER(timer, timer);
HANDLER(descriptor, descriptor);
HANDLER(child, child);
HANDLER(aside, aside);
static const struct mk_handler text_handler = {.name = "text",
                                               .syntax = "TEXT",
                                               .methods = MK_METHOD_BIT(MK_METHOD_GET),
                                               .handle = text,
                                               .bind = bind_text};

MK_PLUGIN(response_kinds) = {
    MK_PLUGIN_HEAD,
    .name = "response-kinds",
    .handlers = (const struct mk_handler *const[]){&text_handler, &verdict_handler, &file_handler,
                                                   &count_handler, &raw_handler, &sum_handler, &timer_handler,
                                                   &descriptor_handler, &child_handler, &aside_handler, NULL},
    .load = load,
    .on_request = on_request,
    .on_response = on_response,
};
