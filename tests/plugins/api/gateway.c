/* SPDX-License-Identifier: Apache-2.0 */
/* Features of responses that gateways use, controlled by the query: fails?at=N&status=S&wait=1&... */
#include <errno.h>
#include <monkey/plugin.h>
#include <stdio.h>

static mk_str word_of(const struct mk_request *request, const char *name)
{
    mk_str rest = mk_request_query(request);
    while (rest.p) {
        mk_str value = mk_str_cut(&rest, '&'), word = mk_str_cut(&value, '=');
        if (mk_str_eq(word, mk_str_from_c(name)))
            return value;
    }
    return (mk_str){NULL, 0};
}

static uint64_t number_of(const struct mk_request *request, const char *name, uint64_t otherwise)
{
    uint64_t n;
    return mk_num_parse(word_of(request, name), &n) ? n : otherwise;
}

static enum mk_verdict refuse(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

/* ---- fails?at=N&status=S: a source of unknown length that fails after N bytes; early=1 sets the status
 * before the first read, reads=1 reads the request body first. ---- */

struct fails {
    struct mk_request *request;
    struct mk_response *response;
    uint64_t left;
};

static ssize_t pull_failing(void *ctx, char *buffer, size_t cap)
{
    struct fails *f = ctx;
    size_t n = f->left < cap ? (size_t)f->left : cap;
    if (n == 0) {
        if (!word_of(f->request, "early").p)
            mk_response_fail(f->response, (unsigned)number_of(f->request, "status", 0));
        return -EPIPE;
    }
    memset(buffer, 'x', n);
    f->left -= n;
    return (ssize_t)n;
}

static int read_all(struct mk_request *request)
{
    char buffer[1000];
    ssize_t n;
    while ((n = mk_request_read(request, buffer, sizeof buffer)) > 0)
        continue;
    return (int)n;
}

static enum mk_verdict fails(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = pull_failing};
    struct fails *f = mk_request_alloc(request, sizeof *f);
    (void)data;
    if (!f)
        return refuse(response, 503);
    *f = (struct fails){.request = request, .response = response, .left = number_of(request, "at", 0)};
    if (word_of(request, "reads").p && read_all(request) == -EAGAIN)
        return MK_WAIT;
    if (word_of(request, "early").p && mk_response_fail(response, (unsigned)number_of(request, "status", 0)))
        return refuse(response, 501);
    mk_response_add_header_nocopy(response, MK_STR("Cache-Control"), MK_STR("max-age=99"));
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_body_source(response, &ops, f, MK_LENGTH_UNKNOWN) ? refuse(response, 503)
                                                                             : MK_DONE;
}

/* ---- closes?size=N&known=1&status=S&lies=1&name=X: a source that logs the outcome of the response when it
 * closes; replaced=1 lets a hook replace it, cut=N adds a filter that reads at most N bytes. ---- */

struct closes {
    struct mk_request *request;
    struct mk_response *response;
    uint64_t left;
    bool lies;
};

static ssize_t pull_counted(void *ctx, char *buffer, size_t cap)
{
    struct closes *c = ctx;
    size_t n = c->left < cap ? (size_t)c->left : cap;
    memset(buffer, 'x', n);
    c->left -= n;
    return n ? (ssize_t)n : c->lies ? -EPIPE : 0;
}

static void log_closed(const struct closes *c, const char *what)
{
    mk_worker_log(mk_request_worker(c->request), MK_LOG_INFO, "gateway: %s %.*s: %s, %llu left", what,
                  MK_STR_ARG(word_of(c->request, "name")),
                  mk_response_was_sent(c->response) ? "sent" : "not sent", (unsigned long long)c->left);
}

static void on_close(void *ctx)
{
    log_closed(ctx, "closed");
}

static void on_end(void *ctx)
{
    log_closed(ctx, "ended");
}

static enum mk_verdict closes(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = pull_counted, .close = on_close};
    struct closes *c = mk_request_alloc(request, sizeof *c);
    uint64_t size = number_of(request, "size", 1000);
    (void)data;
    if (!c || mk_request_add_cleanup(request, on_end, c))
        return refuse(response, 503);
    *c = (struct closes){
        .request = request, .response = response, .left = size, .lies = word_of(request, "lies").p};
    mk_response_set_status(response, (unsigned)number_of(request, "status", 200));
    int64_t length = word_of(request, "known").p ? (int64_t)size + c->lies : MK_LENGTH_UNKNOWN;
    return mk_response_set_body_source(response, &ops, c, length) ? refuse(response, 503) : MK_DONE;
}

static ssize_t pull_slowly(void *ctx, struct mk_filter_next *next, char *buffer, size_t cap)
{
    uint64_t *left = ctx;
    ssize_t n = *left ? mk_filter_next_read(next, buffer, *left < cap ? (size_t)*left : cap) : 0;
    *left -= n > 0 ? (uint64_t)n : 0;
    return n;
}

static void cut(struct mk_request *request, struct mk_response *response)
{
    static const struct mk_filter_ops ops = {.read = pull_slowly};
    uint64_t *left = mk_request_alloc(request, sizeof *left);
    if (!left)
        return;
    *left = number_of(request, "cut", 0);
    mk_response_add_filter(response, &ops, left, MK_LENGTH_UNKNOWN);
}

/* ---- hints?status=S&often=N&reads=before|after&wait=MS: interim responses, each with a Link header ---- */

struct hints {
    struct mk_request *request;
    struct mk_timer timer;
    bool over;
};

static void on_due(struct mk_timer *t)
{
    struct hints *h = MK_CONTAINER(t, struct hints, timer);
    h->over = true;
    mk_request_resume(h->request);
}

static void end_hints(void *ctx)
{
    mk_timer_stop(&((struct hints *)ctx)->timer);
}

static int send_hints(struct mk_request *request, struct mk_response *response)
{
    unsigned status = (unsigned)number_of(request, "status", 103);
    uint64_t often = number_of(request, "often", 1);
    for (uint64_t i = 0; i < often; i++) {
        char buffer[64];
        struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
        mk_buf_addf(&text, "</%llu.css>; rel=preload", (unsigned long long)i);
        const struct mk_header fields[] = {{MK_STR("Link"), mk_buf_str(&text)},
                                           {MK_STR("X-Hint"), MK_STR("yes")}};
        int e = mk_response_send_1xx(request, response, status, fields, MK_LEN(fields));
        if (e)
            return e;
    }
    return 0;
}

static struct hints *begin_hints(struct mk_request *request)
{
    struct hints *h = mk_request_alloc(request, sizeof *h);
    if (!h)
        return NULL;
    *h = (struct hints){.request = request};
    mk_timer_init(&h->timer, on_due);
    if (mk_request_add_cleanup(request, end_hints, h))
        return NULL;
    mk_request_set_data(request, h);
    mk_timer_set(&h->timer, mk_request_worker(request), (uint32_t)number_of(request, "wait", 0));
    return h;
}

static enum mk_verdict hints(struct mk_request *request, struct mk_response *response, void *data)
{
    struct hints *h = mk_request_data(request);
    char text[32];
    (void)data;
    if (!h) {
        bool reads = mk_str_eq(word_of(request, "reads"), MK_STR("before"));
        if (reads)
            (void)read_all(request);
        int e = send_hints(request, response);
        snprintf(text, sizeof text, "%d", e);
        mk_response_set_header(response, MK_STR("X-Error"), mk_str_from_c(text));
        h = begin_hints(request);
    }
    if (!h)
        return refuse(response, 503);
    if (read_all(request) == -EAGAIN || !h->over)
        return MK_WAIT;
    mk_response_add_header_nocopy(response, MK_STR("Link"), MK_STR("</final.css>"));
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_body_nocopy(response, MK_STR("final\n")) ? refuse(response, 503) : MK_DONE;
}

/* ---- origin?field=NAME:VALUE&...&known=1&early=NAME:VALUE&late=NAME:VALUE&refuse=S: a response as from
 * another server, with trailers. ---- */

struct origin {
    struct mk_request *request;
    struct mk_response *response;
    bool hinted;
};

/* Adds every header or trailer with this name from the query. */
static void add_all(struct origin *o, const char *name, int (*add)(struct mk_response *, mk_str, mk_str))
{
    mk_str rest = mk_request_query(o->request);
    char buffer[256];
    while (rest.p) {
        mk_str value = mk_str_cut(&rest, '&'), word = mk_str_cut(&value, '=');
        struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
        mk_url_unescape(&text, value);
        value = mk_buf_str(&text);
        mk_str field = mk_str_cut(&value, ':');
        if (mk_str_eq(word, mk_str_from_c(name)) && add(o->response, field, value))
            mk_worker_log(mk_request_worker(o->request), MK_LOG_ERROR, "gateway: %.*s is refused",
                          MK_STR_ARG(field));
    }
}

static ssize_t pull_origin(void *ctx, char *buffer, size_t cap)
{
    struct origin *o = ctx;
    if (o->hinted)
        return 0;
    add_all(o, "late", mk_response_add_trailer);
    o->hinted = true;
    size_t n = cap < 5 ? cap : 5;
    memcpy(buffer, "hello", n);
    return (ssize_t)n;
}

static enum mk_verdict origin(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = pull_origin};
    struct origin *o = mk_request_alloc(request, sizeof *o);
    (void)data;
    if (!o)
        return refuse(response, 503);
    *o = (struct origin){.request = request, .response = response};
    add_all(o, "field", mk_response_add_header);
    add_all(o, "early", mk_response_add_trailer);
    if (word_of(request, "refuse").p)
        return refuse(response, (unsigned)number_of(request, "refuse", 0));
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    int64_t length = word_of(request, "known").p ? 5 : MK_LENGTH_UNKNOWN;
    return mk_response_set_body_source(response, &ops, o, length) ? refuse(response, 503) : MK_DONE;
}

/* ---- events?silence=MS&limit=MS&name=X: an event, silence, another event; the handler may wait for
 * `limit` ms, 0: no limit. ---- */

struct events {
    struct mk_request *request;
    struct mk_timer timer;
    unsigned due, hinted;
    struct mk_response *response;
};

static void on_event(struct mk_timer *t)
{
    struct events *e = MK_CONTAINER(t, struct events, timer);
    e->due++;
    mk_request_resume(e->request);
}

static ssize_t pull_event(void *ctx, char *buffer, size_t cap)
{
    struct events *e = ctx;
    if (e->hinted == 2)
        return 0;
    if (e->hinted == e->due)
        return -EAGAIN;
    size_t n = cap < 9 ? cap : 9;
    memcpy(buffer, "data: a\n\n", n);
    if (e->hinted++ == 0)
        mk_timer_set(&e->timer, mk_request_worker(e->request), (uint32_t)number_of(e->request, "silence", 0));
    return (ssize_t)n;
}

static void close_events(void *ctx)
{
    struct events *e = ctx;
    mk_timer_stop(&e->timer);
    mk_worker_log(mk_request_worker(e->request), MK_LOG_INFO, "gateway: events %.*s: %s",
                  MK_STR_ARG(word_of(e->request, "name")),
                  mk_response_was_sent(e->response) ? "sent" : "cut off");
}

static enum mk_verdict events(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops ops = {.read = pull_event, .close = close_events};
    struct events *e = mk_request_alloc(request, sizeof *e);
    (void)data;
    if (!e)
        return refuse(response, 503);
    *e = (struct events){.request = request, .response = response, .due = 1};
    mk_timer_init(&e->timer, on_event);
    uint32_t limit = (uint32_t)number_of(request, "limit", 0);
    if (word_of(request, "limit").p && mk_request_set_handler_timeout(request, limit ? limit : MK_FOREVER))
        return refuse(response, 503);
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/event-stream"));
    return mk_response_set_body_source(response, &ops, e, MK_LENGTH_UNKNOWN) ? refuse(response, 503)
                                                                             : MK_DONE;
}

/* ---- raw: returns the target to forward, and the original one. Paths below /old are rewritten. ---- */

static enum mk_verdict raw(struct mk_request *request, struct mk_response *response, void *data)
{
    mk_str now = mk_request_raw_target(request), then = mk_request_target(request);
    struct mk_buf text = mk_buf_growing(8192);
    (void)data;
    mk_buf_addf(&text, "%.*s\n%.*s\n", MK_STR_ARG(now), MK_STR_ARG(then));
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    int e = mk_response_set_body(response, mk_buf_str(&text));
    mk_buf_free(&text);
    return e ? refuse(response, 503) : MK_DONE;
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    (void)host_data;
    if (!mk_str_starts(mk_request_path(request), MK_STR("/old")))
        return MK_NEXT;
    return mk_request_rewrite(request, MK_STR("/raw/n%65w%20one?b=%32")) ? refuse(response, 503)
                                                                         : MK_REWRITTEN;
}

/* ---- look?PATH: type, size and time of the path ---- */

static enum mk_verdict stat_path(struct mk_request *request, struct mk_response *response, void *data)
{
    static const char *const kinds[] = {"file", "folder", "other"};
    struct mk_file_id id = {0};
    char buffer[256];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    int kind = mk_request_stat(request, mk_request_query(request), &id);
    (void)data;
    if (kind < 0)
        mk_buf_addf(&text, "%d", kind);
    else
        mk_buf_addf(&text, "%s %llu %lld", kinds[kind], (unsigned long long)id.size,
                    (long long)(id.modified_ns / 1000000000));
    mk_response_add_header_nocopy(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_body(response, mk_buf_str(&text)) ? refuse(response, 503) : MK_DONE;
}

/* ---- The plugin ---- */

static int host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    (void)config, (void)data;
    *host_data = h;
    return 0;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    (void)host_data;
    mk_response_add_header_nocopy(response, MK_STR("X-Seen"), MK_STR("once"));
    if (word_of(request, "replaced").p)
        mk_response_set_body_nocopy(response, MK_STR("replaced"));
    if (word_of(request, "cut").p)
        cut(request, response);
}

static const struct mk_handler fails_handler = {.name = "fails", .handle = fails},
                               closes_handler = {.name = "closes", .handle = closes},
                               hints_handler = {.name = "hints", .handle = hints},
                               origin_handler = {.name = "origin", .handle = origin},
                               raw_handler = {.name = "raw", .handle = raw},
                               stat_handler = {.name = "look", .handle = stat_path},
                               events_handler = {.name = "gateway-events", .handle = events};

MK_PLUGIN(gateway) = {
    MK_PLUGIN_HEAD,
    .name = "gateway",
    .version = "1",
    .help = "Does what gateways do.",
    .handlers = (const struct mk_handler *const[]){&fails_handler, &closes_handler, &hints_handler,
                                                   &origin_handler, &raw_handler, &events_handler,
                                                   &stat_handler, NULL},
    .host = host,
    .on_request = on_request,
    .on_response = on_response,
};
