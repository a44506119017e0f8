/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels on demand. Each handler below accepts any protocol that the client asks for:
 *
 * - tunnel-echo: echoes its input at once, and ends when the client does
 * - tunnel-both: sends as many bytes as the query says and, when the client has ended, how many it received
 * - tunnel-first: sends "hello\n", then works like tunnel-echo
 * - tunnel-bye: sends "bye\n" and shuts down its side; then logs the number of received bytes
 * - tunnel-deaf: like tunnel-bye, but reads nothing
 * - tunnel-alarm: sends "tick\n" every 50 ms, as often as the query says, whatever the client does
 * - tunnel-idle: sends and reads nothing
 * - tunnel-breaks: aborts on the first input
 * - tunnel-two: accepts the upgrade, and then, as the query says, accepts it again (twice), returns an error
 *   (refuse) or declines (next) */
#include <errno.h>
#include <monkey/plugin.h>
#include <stdlib.h>

struct tunnel {
    struct mk_request *request;
    struct mk_timer timer;
    uint64_t received, left, sent;
    bool client_ended;
    mk_str text; /* text to send before anything else */
};

static void count_input(struct tunnel *t)
{
    char buffer[16384];
    ssize_t n;
    while ((n = mk_request_read(t->request, buffer, sizeof buffer)) > 0)
        t->received += (uint64_t)n;
    t->client_ended = t->client_ended || n == 0;
}

static size_t write_output(struct tunnel *t, char *buffer, size_t cap)
{
    size_t n = t->text.len < cap ? t->text.len : cap;
    if (n)
        memcpy(buffer, t->text.p, n);
    t->text = mk_str_skip(t->text, n);
    t->sent += n;
    return n;
}

static void on_close(void *ctx)
{
    struct tunnel *t = ctx;
    mk_timer_stop(&t->timer);
    mk_worker_log(mk_request_worker(t->request), MK_LOG_INFO, "tunnel: closed, heard %llu, said %llu%s",
                  (unsigned long long)t->received, (unsigned long long)t->sent,
                  t->client_ended ? ", to the end" : "");
}

static ssize_t pull_echo(void *ctx, char *buffer, size_t cap)
{
    struct tunnel *t = ctx;
    size_t first = write_output(t, buffer, cap);
    if (first)
        return (ssize_t)first;
    ssize_t n = mk_request_read(t->request, buffer, cap);
    t->client_ended = n == 0;
    if (n > 0) {
        t->received += (uint64_t)n;
        t->sent += (uint64_t)n;
    }
    return n;
}

static bool read_input(void *ctx, bool has_input)
{
    (void)has_input;
    count_input(ctx);
    return true;
}

static ssize_t pull_both(void *ctx, char *buffer, size_t cap)
{
    struct tunnel *t = ctx;
    if (t->left) {
        size_t n = t->left < cap ? (size_t)t->left : cap;
        memset(buffer, 'x', n);
        t->left -= n;
        t->sent += n;
        return (ssize_t)n;
    }
    if (!t->client_ended)
        return -EAGAIN;
    if (!t->text.p) {
        char *line = mk_request_alloc(t->request, 64);
        struct mk_buf text = mk_buf_fixed(line, line ? 64 : 0);
        mk_buf_addf(&text, "heard %llu\n", (unsigned long long)t->received);
        t->text = mk_buf_str(&text);
    }
    return (ssize_t)write_output(t, buffer, cap);
}

static ssize_t pull_bye(void *ctx, char *buffer, size_t cap)
{
    return (ssize_t)write_output(ctx, buffer, cap);
}

static bool ignore_input(void *ctx, bool has_input)
{
    (void)ctx, (void)has_input;
    return false;
}

static void on_tick(struct mk_timer *timer)
{
    struct tunnel *t = MK_CONTAINER(timer, struct tunnel, timer);
    t->text = MK_STR("tick\n");
    mk_request_resume(t->request);
}

static ssize_t pull_ticks(void *ctx, char *buffer, size_t cap)
{
    struct tunnel *t = ctx;
    if (!t->text.len)
        return t->left ? -EAGAIN : 0;
    ssize_t n = (ssize_t)write_output(t, buffer, cap);
    if (!t->text.len && --t->left)
        mk_timer_set(&t->timer, mk_request_worker(t->request), 50);
    return n;
}

static ssize_t pull_nothing(void *ctx, char *buffer, size_t cap)
{
    (void)ctx, (void)buffer, (void)cap;
    return -EAGAIN;
}

static ssize_t pull_break(void *ctx, char *buffer, size_t cap)
{
    (void)buffer, (void)cap;
    count_input(ctx);
    return ((struct tunnel *)ctx)->received ? -EIO : -EAGAIN;
}

static const struct mk_tunnel_ops echo = {.source = {.read = pull_echo, .close = on_close}},
                                  both = {.source = {.read = pull_both, .close = on_close},
                                          .on_input = read_input},
                                  bye = {.source = {.read = pull_bye, .close = on_close},
                                         .on_input = read_input},
                                  deaf = {.source = {.read = pull_bye, .close = on_close},
                                          .on_input = ignore_input},
                                  ticks = {.source = {.read = pull_ticks, .close = on_close},
                                           .on_input = read_input},
                                  idle = {.source = {.read = pull_nothing, .close = on_close}},
                                  breaks = {.source = {.read = pull_break, .close = on_close}};

static struct tunnel *new_tunnel(struct mk_request *request, mk_str text)
{
    struct tunnel *t = mk_request_alloc(request, sizeof *t);
    if (!t)
        return NULL;
    *t = (struct tunnel){.request = request, .text = text};
    (void)!mk_num_parse(mk_request_query(request), &t->left);
    return t;
}

static enum mk_verdict open_it(struct mk_request *request, struct mk_response *response,
                               const struct mk_tunnel_ops *ops, mk_str text)
{
    if (!mk_request_tunnel(request).p)
        return MK_NEXT;
    struct tunnel *t = new_tunnel(request, text);
    if (!t)
        return MK_ERROR;
    mk_response_add_header(response, MK_STR("X-Tunnel"), mk_request_tunnel(request));
    if (mk_response_open_tunnel(request, response, ops, t))
        return MK_ERROR;
    return MK_DONE;
}

#define HANDLER(what, text)                                                                                  \
    static enum mk_verdict open_##what(struct mk_request *request, struct mk_response *response, void *data) \
    {                                                                                                        \
        (void)data;                                                                                          \
        return open_it(request, response, &what, text);                                                      \
    }                                                                                                        \
    static const struct mk_handler what##_handler = {.name = "tunnel-" #what, .handle = open_##what};
static const mk_str nothing = {NULL, 0};
HANDLER(echo, nothing)
HANDLER(both, nothing)
HANDLER(bye, MK_STR("bye\n"))
HANDLER(deaf, MK_STR("bye\n"))
HANDLER(idle, nothing)
HANDLER(breaks, nothing)

static enum mk_verdict open_first(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    return open_it(request, response, &echo, MK_STR("hello\n"));
}

static enum mk_verdict open_alarm(struct mk_request *request, struct mk_response *response, void *data)
{
    struct tunnel *t = new_tunnel(request, nothing);
    (void)data;
    if (!t)
        return MK_ERROR;
    mk_timer_init(&t->timer, on_tick);
    if (mk_response_open_tunnel(request, response, &ticks, t))
        return MK_ERROR;
    mk_timer_set(&t->timer, mk_request_worker(request), 50);
    return MK_DONE;
}

static enum mk_verdict open_two(struct mk_request *request, struct mk_response *response, void *data)
{
    mk_str what = mk_request_query(request);
    char buffer[16];
    (void)data;
    if (open_it(request, response, &echo, nothing) != MK_DONE)
        return MK_NEXT;
    if (mk_request_read(request, buffer, sizeof buffer) != -EAGAIN || mk_request_length(request) != -1 ||
        mk_response_length(response) != MK_LENGTH_UNKNOWN || mk_response_will_send_body(request, response) ||
        mk_response_set_body(response, MK_STR("no")) != -EALREADY ||
        mk_response_set_status(response, 200) != -EALREADY)
        abort();
    if (mk_str_eq(what, MK_STR("twice")) &&
        mk_response_open_tunnel(request, response, &echo, new_tunnel(request, nothing)) != -EALREADY)
        abort();
    if (mk_str_eq(what, MK_STR("refuse")))
        return MK_ERROR;
    return mk_str_eq(what, MK_STR("next")) ? MK_NEXT : MK_DONE;
}

static const struct mk_handler first_handler = {.name = "tunnel-first", .handle = open_first},
                               alarm_handler = {.name = "tunnel-alarm", .handle = open_alarm},
                               two_handler = {.name = "tunnel-two", .handle = open_two};

MK_PLUGIN(tunnels) = {
    MK_PLUGIN_HEAD,
    .name = "tunnels",
    .handlers = (const struct mk_handler *const[]){&echo_handler, &both_handler, &bye_handler, &deaf_handler,
                                                   &idle_handler, &breaks_handler, &first_handler,
                                                   &alarm_handler, &two_handler, NULL},
};
