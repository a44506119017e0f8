/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that exercise everything a handler may do: they read and write in pieces, wait, fail and exceed
 * limits. Used by tests of every layer from web upwards, by fuzz targets and by the test server; independent
 * of cmocka. The query of the request has their parameters: a single number, or "name=number&...". */
#ifndef MK_UNIT_HANDLERS_H
#define MK_UNIT_HANDLERS_H

#include <errno.h>
#include <monkey/handler.h>
#include <monkey/tunnel.h>
#include <time.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "event/offload.h"
#include "web/route.h"

/* The data of all routes. `slow` needs a loop and `thread` needs a thread pool. */
struct handlers {
    struct mk_loop *loop;
    struct mk_offload *helper;
};

static inline uint64_t handlers_number(const struct mk_request *request, const char *name, uint64_t otherwise)
{
    mk_str rest = mk_request_query(request);
    uint64_t n;
    while (rest.p) {
        mk_str value = mk_str_cut(&rest, '&'), key = mk_str_cut(&value, '=');
        if (mk_str_eq(key, mk_str_from_c(name)) && mk_num_parse(value, &n))
            return n;
    }
    return otherwise;
}

static inline enum mk_verdict handlers_refuse(struct mk_response *response, unsigned status)
{
    (void)mk_response_set_status(response, status);
    return MK_ERROR;
}

static inline enum mk_verdict handlers_respond(struct mk_response *response, mk_str text)
{
    (void)mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_body(response, text) ? handlers_refuse(response, 503) : MK_DONE;
}

/* ---- Reading the body ---- */

/* Byte count and checksum of a request body. */
struct handlers_sum {
    uint64_t n, sum;
};

static inline void handlers_add(struct handlers_sum *s, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        s->sum = s->sum * 31 + (unsigned char)p[i];
    s->n += len;
}

/* sink: reads the whole body and responds with "COUNT SUM". A body over the limit gets 413, a malformed one
 * 400. */
static inline enum mk_verdict handlers_sink(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    struct handlers_sum *s = mk_request_data(request);
    char buffer[16 * 1024];
    ssize_t n;
    (void)data;
    if (!s && (s = mk_request_alloc(request, sizeof *s))) {
        *s = (struct handlers_sum){0};
        mk_request_set_data(request, s);
    }
    if (!s)
        return handlers_refuse(response, 503);
    while ((n = mk_request_read(request, buffer, sizeof buffer)) > 0)
        handlers_add(s, buffer, (size_t)n);
    if (n == -EAGAIN)
        return MK_WAIT;
    if (n < 0)
        return handlers_refuse(response, n == -EMSGSIZE ? 413 : n == -EBADMSG ? 400 : 500);
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_addf(&text, "%llu %llu\n", (unsigned long long)s->n, (unsigned long long)s->sum);
    return handlers_respond(response, mk_buf_str(&text));
}

/* sip: reads n bytes, or slightly more, and leaves the other bytes unread. */
static inline enum mk_verdict handlers_sip(struct mk_request *request, struct mk_response *response,
                                           void *data)
{
    uint64_t *left = mk_request_data(request);
    char buffer[100];
    ssize_t n = 1;
    (void)data;
    if (!left && (left = mk_request_alloc(request, sizeof *left))) {
        *left = handlers_number(request, "n", 10);
        mk_request_set_data(request, left);
    }
    while (left && *left && (n = mk_request_read(request, buffer, sizeof buffer)) > 0)
        *left -= mk_min((size_t)n, (size_t)*left);
    return n == -EAGAIN ? MK_WAIT : handlers_respond(response, MK_STR("sip\n"));
}

/* early: responds without reading the body. */
static inline enum mk_verdict handlers_early(struct mk_request *request, struct mk_response *response,
                                             void *data)
{
    (void)request;
    (void)data;
    return handlers_respond(response, MK_STR("early\n"));
}

static inline ssize_t handlers_pull_echo(void *ctx, char *buffer, size_t cap)
{
    return mk_request_read(ctx, buffer, cap);
}

/* echo: streams the body back as it arrives, with a Content-Length or chunked, like the request. */
static inline enum mk_verdict handlers_echo(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    static const struct mk_body_source_ops source = {.read = handlers_pull_echo};
    (void)data;
    (void)mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("application/octet-stream"));
    return mk_response_set_body_source(response, &source, request, mk_request_length(request))
               ? handlers_refuse(response, 500)
               : MK_DONE;
}

/* wait=...: sets a timeout for this request only; 0: none. */
static inline void handlers_limit(struct mk_request *request)
{
    uint64_t wait = handlers_number(request, "wait", UINT64_MAX);
    if (wait != UINT64_MAX)
        (void)mk_request_set_handler_timeout(request, wait ? (uint32_t)wait : MK_FOREVER);
}

/* ---- Writing the body ---- */

struct handlers_source {
    struct mk_request *request;
    uint64_t at, n;
    uint64_t fails_at; /* UINT64_MAX: never */
};

/* Returns the byte of a source at this offset. */
static inline char handlers_byte(uint64_t at)
{
    return (char)('a' + at % 23);
}

/* Size of the largest buffer that a source was offered; tests may reset it. */
static size_t handlers_largest_buffer;

static inline ssize_t handlers_pull(void *ctx, char *buffer, size_t cap)
{
    struct handlers_source *s = ctx;
    handlers_largest_buffer = cap > handlers_largest_buffer ? cap : handlers_largest_buffer;
    if (s->at >= s->fails_at)
        return -EIO;
    uint64_t left = (s->n < s->fails_at ? s->n : s->fails_at) - s->at;
    size_t n = left < cap ? (size_t)left : cap;
    for (size_t i = 0; i < n; i++)
        buffer[i] = handlers_byte(s->at + i);
    s->at += n;
    return (ssize_t)n;
}

static inline struct handlers_source *handlers_new_source(struct mk_request *request)
{
    struct handlers_source *s = mk_request_alloc(request, sizeof *s);
    handlers_limit(request);
    if (s)
        *s = (struct handlers_source){
            .request = request, .n = handlers_number(request, "n", 1000), .fails_at = UINT64_MAX};
    return s;
}

static inline enum mk_verdict handlers_start(struct mk_response *response, struct handlers_source *s,
                                             const struct mk_body_source_ops *ops)
{
    bool unknown = handlers_number(s->request, "unknown", 0);
    (void)mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain"));
    return mk_response_set_body_source(response, ops, s, unknown ? MK_LENGTH_UNKNOWN : (int64_t)s->n)
               ? handlers_refuse(response, 500)
               : MK_DONE;
}

/* source: sends n bytes from a source; unknown=1 hides the length. */
static inline enum mk_verdict handlers_stream(struct mk_request *request, struct mk_response *response,
                                              void *data)
{
    static const struct mk_body_source_ops ops = {.read = handlers_pull};
    struct handlers_source *s = handlers_new_source(request);
    (void)data;
    return s ? handlers_start(response, s, &ops) : handlers_refuse(response, 503);
}

/* broken: like source, but fails after half of the bytes; status=... is sent if the head is still unsent. */
static inline enum mk_verdict handlers_broken(struct mk_request *request, struct mk_response *response,
                                              void *data)
{
    static const struct mk_body_source_ops ops = {.read = handlers_pull};
    struct handlers_source *s = handlers_new_source(request);
    (void)data;
    if (!s)
        return handlers_refuse(response, 503);
    s->fails_at = s->n / 2;
    (void)mk_response_fail(response, (unsigned)handlers_number(request, "status", 0));
    return handlers_start(response, s, &ops);
}

/* liar: announces n bytes and sends fewer or more (has=...). */
static inline enum mk_verdict handlers_liar(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    static const struct mk_body_source_ops ops = {.read = handlers_pull};
    struct handlers_source *s = handlers_new_source(request);
    (void)data;
    if (!s)
        return handlers_refuse(response, 503);
    int64_t promised = (int64_t)s->n;
    s->n = handlers_number(request, "has", s->n);
    return mk_response_set_body_source(response, &ops, s, promised) ? handlers_refuse(response, 500)
                                                                    : MK_DONE;
}

/* mad: sends a response head of n bytes, at most a million. */
static inline enum mk_verdict handlers_mad(struct mk_request *request, struct mk_response *response,
                                           void *data)
{
    size_t left = mk_min((size_t)handlers_number(request, "n", 100000), 1000000);
    char value[1000];
    (void)data;
    memset(value, 'm', sizeof value);
    for (; left; left -= mk_min(left, sizeof value))
        (void)mk_response_add_header(response, MK_STR("X-Mad"), mk_str_of(value, mk_min(left, sizeof value)));
    return handlers_respond(response, MK_STR("mad\n"));
}

/* ---- Waiting ---- */

/* never: suspends the request and never resumes it. */
static inline enum mk_verdict handlers_never(struct mk_request *request, struct mk_response *response,
                                             void *data)
{
    (void)response;
    (void)data;
    handlers_limit(request);
    return MK_WAIT;
}

struct handlers_slow {
    struct mk_timer timer;
    struct mk_loop *loop;
    struct handlers_source source; /* used by drip; the other handlers use only the request in it */
    uint32_t ms;
    bool rung;
};

static inline void handlers_on_due(struct mk_timer *t)
{
    struct handlers_slow *s = MK_CONTAINER(t, struct handlers_slow, timer);
    s->rung = true;
    mk_request_resume(s->source.request);
}

static inline void handlers_stop_timer(void *timer)
{
    mk_timer_stop(timer);
}

static inline struct handlers_slow *handlers_new_slow(struct mk_request *request, const struct handlers *h)
{
    struct handlers_slow *s = h->loop ? mk_request_alloc(request, sizeof *s) : NULL;
    if (!s)
        return NULL;
    handlers_limit(request);
    *s = (struct handlers_slow){.loop = h->loop, .ms = (uint32_t)handlers_number(request, "ms", 20)};
    s->source = (struct handlers_source){
        .request = request, .n = handlers_number(request, "n", 5), .fails_at = UINT64_MAX};
    mk_timer_init(&s->timer, handlers_on_due);
    return mk_request_add_cleanup(request, handlers_stop_timer, &s->timer) ? NULL : s;
}

static inline void handlers_sleep(struct handlers_slow *s)
{
    s->rung = false;
    mk_loop_set_timer(s->loop, &s->timer, s->ms);
}

/* slow: waits for ms milliseconds. */
static inline enum mk_verdict handlers_wait(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    struct handlers_slow *s = mk_request_data(request);
    if (s)
        return s->rung ? handlers_respond(response, MK_STR("slow\n")) : MK_WAIT;
    s = handlers_new_slow(request, data);
    if (!s)
        return handlers_refuse(response, 503);
    mk_request_set_data(request, s);
    handlers_sleep(s);
    return MK_WAIT;
}

/* hint: sends n interim responses with a header of size=... bytes; after ms milliseconds responds with the
 * number of interim responses that could be sent. */
static inline enum mk_verdict handlers_hint(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    struct handlers_slow *s = mk_request_data(request);
    char buffer[8192];
    if (s) {
        struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
        mk_buf_addf(&text, "%llu\n", (unsigned long long)s->source.at);
        return s->rung ? handlers_respond(response, mk_buf_str(&text)) : MK_WAIT;
    }
    s = handlers_new_slow(request, data);
    if (!s)
        return handlers_refuse(response, 503);
    mk_request_set_data(request, s);
    memset(buffer, 'h', sizeof buffer);
    size_t size = mk_min((size_t)handlers_number(request, "size", 10), sizeof buffer);
    const struct mk_header line = {MK_STR("X-Hint"), mk_str_of(buffer, size)};
    for (uint64_t i = 0; i < s->source.n; i++)
        s->source.at += mk_response_send_1xx(request, response, 103, &line, 1) == 0;
    handlers_sleep(s);
    return MK_WAIT;
}

static inline ssize_t handlers_pull_drop(void *ctx, char *buffer, size_t cap)
{
    struct handlers_slow *s = ctx;
    if (s->source.at == s->source.n)
        return 0;
    if (!s->rung) {
        if (!mk_timer_is_set(&s->timer))
            handlers_sleep(s);
        return -EAGAIN;
    }
    s->rung = false;
    return handlers_pull(&s->source, buffer, cap < 1 ? cap : 1);
}

/* drip: sends n bytes, one every ms milliseconds. */
static inline enum mk_verdict handlers_drip(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    static const struct mk_body_source_ops ops = {.read = handlers_pull_drop};
    struct handlers_slow *s = handlers_new_slow(request, data);
    if (!s || mk_response_set_body_source(response, &ops, s, MK_LENGTH_UNKNOWN))
        return handlers_refuse(response, 503);
    return MK_DONE;
}

struct handlers_job {
    struct mk_offload_job job;
    struct mk_request *request; /* NULL: the request has ended */
    bool done;
};

static inline void handlers_run_job(struct mk_offload_job *job)
{
    (void)job;
    const struct timespec short_pause = {.tv_nsec = 5000000};
    nanosleep(&short_pause, NULL);
}

static inline void handlers_on_job_done(struct mk_offload_job *job)
{
    struct handlers_job *j = MK_CONTAINER(job, struct handlers_job, job);
    j->done = true;
    if (j->request)
        mk_request_resume(j->request);
    else
        mk_mem_free(j);
}

static inline void handlers_forget_job(void *job)
{
    struct handlers_job *j = job;
    if (j->done)
        mk_mem_free(j);
    else
        j->request = NULL;
}

/* thread: waits for another thread. */
static inline enum mk_verdict handlers_thread(struct mk_request *request, struct mk_response *response,
                                              void *data)
{
    const struct handlers *h = data;
    struct handlers_job *j = mk_request_data(request);
    if (j)
        return j->done ? handlers_respond(response, MK_STR("thread\n")) : MK_WAIT;
    j = h->helper ? mk_mem_alloc(sizeof *j) : NULL;
    if (!j)
        return handlers_refuse(response, 503);
    *j = (struct handlers_job){.job = {.run = handlers_run_job, .done = handlers_on_job_done},
                               .request = request};
    if (mk_request_add_cleanup(request, handlers_forget_job, j) || !mk_offload_submit(h->helper, &j->job)) {
        mk_mem_free(j);
        return handlers_refuse(response, 503);
    }
    mk_request_set_data(request, j);
    return MK_WAIT;
}

/* ---- Tunnels and trailers ---- */

struct handlers_tunnel {
    struct mk_request *request;
    uint64_t left, stops_at; /* bytes still to send; client bytes to read before closing (stops=...) */
    uint64_t input_bytes, fails_at;
    bool ended;
};

static inline ssize_t handlers_pull_tunnel(void *ctx, char *buffer, size_t cap)
{
    struct handlers_tunnel *t = ctx;
    size_t n = mk_min(cap, t->left < SIZE_MAX ? (size_t)t->left : cap);
    if (n == 0) {
        ssize_t got = mk_request_read(t->request, buffer, cap);
        t->input_bytes += got > 0 ? (uint64_t)got : 0;
        return t->input_bytes >= t->fails_at ? -EPIPE : got;
    }
    memset(buffer, 't', n);
    t->left -= n;
    return (ssize_t)n;
}

static inline ssize_t handlers_pull_speech(void *ctx, char *buffer, size_t cap)
{
    struct handlers_tunnel *t = ctx;
    return t->left ? handlers_pull_tunnel(ctx, buffer, cap) : 0;
}

static unsigned handlers_input_calls[2]; /* number of calls without and with input */

static inline bool handlers_hear(void *ctx, bool has_input)
{
    struct handlers_tunnel *t = ctx;
    char buffer[500];
    ssize_t n;
    handlers_input_calls[has_input]++;
    while (has_input && t->input_bytes < t->stops_at &&
           (n = mk_request_read(t->request, buffer, sizeof buffer)) > 0)
        t->input_bytes += (uint64_t)n;
    return t->input_bytes < t->stops_at;
}

/* tunnel: sends n bytes, then echoes all input until the client closes or fails=... bytes have arrived. With
 * stops=..., it sends n bytes, closes its side, and reads that many bytes. */
static inline enum mk_verdict handlers_open(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    static const struct mk_tunnel_ops echo = {.source = {.read = handlers_pull_tunnel}},
                                      apart = {.source = {.read = handlers_pull_speech},
                                               .on_input = handlers_hear};
    struct handlers_tunnel *t = mk_request_alloc(request, sizeof *t);
    (void)data;
    if (!mk_request_tunnel(request).p)
        return MK_NEXT;
    if (!t)
        return handlers_refuse(response, 503);
    *t = (struct handlers_tunnel){.request = request,
                                  .left = handlers_number(request, "n", 0),
                                  .stops_at = handlers_number(request, "stops", UINT64_MAX),
                                  .fails_at = handlers_number(request, "fails", UINT64_MAX)};
    bool by_itself = t->stops_at != UINT64_MAX;
    return mk_response_open_tunnel(request, response, by_itself ? &apart : &echo, t) ? MK_ERROR : MK_DONE;
}

static inline ssize_t handlers_pull_trailers(void *ctx, char *buffer, size_t cap)
{
    struct mk_request *request = ctx;
    struct mk_response *response = mk_request_data(request);
    mk_str name, value;
    ssize_t n = mk_request_read(request, buffer, cap);
    for (size_t i = 0; n == 0 && mk_request_trailer_at(request, i, &name, &value); i++)
        if (mk_response_add_trailer(response, name, value) == -ENOMEM)
            return -ENOMEM;
    return n;
}

/* trailers: streams the body back chunked, followed by all trailers. */
static inline enum mk_verdict handlers_trailers(struct mk_request *request, struct mk_response *response,
                                                void *data)
{
    static const struct mk_body_source_ops ops = {.read = handlers_pull_trailers};
    (void)data;
    mk_request_set_data(request, response);
    (void)mk_response_add_trailer(response, MK_STR("X-First"), MK_STR("known"));
    return mk_response_set_body_source(response, &ops, request, MK_LENGTH_UNKNOWN)
               ? handlers_refuse(response, 503)
               : MK_DONE;
}

/* ---- Routes ---- */

static const struct mk_handler handlers_all[] = {
    {.name = "echo",
     .methods = MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_POST),
     .handle = handlers_echo},
    {.name = "sink",
     .methods = MK_METHOD_BIT(MK_METHOD_POST) | MK_METHOD_BIT(MK_METHOD_PUT),
     .handle = handlers_sink},
    {.name = "reader-limit", .handle = handlers_sink},
    {.name = "sip", .handle = handlers_sip},
    {.name = "early", .handle = handlers_early},
    {.name = "source", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = handlers_stream},
    {.name = "broken", .handle = handlers_broken},
    {.name = "liar", .handle = handlers_liar},
    {.name = "mad", .handle = handlers_mad},
    {.name = "never", .handle = handlers_never},
    {.name = "slow", .handle = handlers_wait},
    {.name = "hint", .handle = handlers_hint},
    {.name = "drip", .handle = handlers_drip},
    {.name = "thread", .handle = handlers_thread},
    {.name = "tunnel", .handle = handlers_open},
    {.name = "trailers", .handle = handlers_trailers},
};

enum { HANDLERS = sizeof handlers_all / sizeof handlers_all[0], HANDLERS_PATTERN = 32 };

struct handlers_routes {
    struct mk_route at[HANDLERS + 1];
    char patterns[HANDLERS][HANDLERS_PATTERN];
};

/* Builds routes "/echo", "/sink" and so on, followed by a catch-all route to `rest` (NULL: none). Returns the
 * number of routes. */
static inline size_t handlers_route(struct handlers_routes *r, struct handlers *h,
                                    const struct mk_handler *rest)
{
    for (size_t i = 0; i < HANDLERS; i++) {
        struct mk_buf text = mk_buf_fixed(r->patterns[i], HANDLERS_PATTERN);
        mk_buf_addf(&text, "/%s", handlers_all[i].name);
        MK_ASSERT(!text.failed);
        r->at[i] = (struct mk_route){.pattern = {.text = mk_buf_str(&text), .kind = MK_PATTERN_EXACT},
                                     .handler = &handlers_all[i],
                                     .data = h};
    }
    r->at[HANDLERS] =
        (struct mk_route){.pattern = {.text = MK_STR("/*"), .kind = MK_PATTERN_ALL}, .handler = rest};
    return rest ? HANDLERS + 1 : HANDLERS;
}

#endif
