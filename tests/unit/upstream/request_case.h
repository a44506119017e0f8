/* SPDX-License-Identifier: Apache-2.0 */
/* A caller of the upstream request: after each on_ready(), it continues the request and records the results.
 * Include it once. */
#ifndef MK_UNIT_UPSTREAM_REQUEST_CASE_H
#define MK_UNIT_UPSTREAM_REQUEST_CASE_H

#include <monkey/text.h>
#include <monkey/upstream.h>

#include "unit/upstream/fake_conn.h"

enum { CALL_TEXT_MAX = 1 << 20, CALL_READ_MAX = 64 * 1024 };

struct call {
    struct mk_upstream_request_options ask;
    struct mk_upstream_request *client;
    size_t read_size; /* buffer size of each read */
    bool is_paused;   /* reads no body */
    bool is_lazy;     /* reads a body at once only if it arrived with the head */
    bool was_whole;
    bool spools; /* spools a body that it does not read */
    bool is_ready;
    unsigned n_ready;
    int head;            /* last result of mk_upstream_request_head() */
    ssize_t end;         /* last result of mk_upstream_request_read() */
    struct mk_buf heads; /* "103 Link: x|200 A: b|" */
    struct mk_buf body, trailers, errors;

    /* The source of the request body. */
    mk_str content;
    size_t pulled, pull_max; /* largest piece of the body source */
    size_t available;        /* bytes after which the source returns -EAGAIN */
    int pull_error;          /* error that the source returns instead of -EAGAIN */
    unsigned n_pulls, n_rewinds;
    bool cannot_rewind;
};

static const struct mk_header call_fields[] = {{MK_STR_INIT("Host"), MK_STR_INIT("example.org")}};

/* ---- Body source ---- */

static ssize_t call_pull(void *ctx, char *buffer, size_t cap)
{
    struct call *call = ctx;
    size_t left = call->content.len - call->pulled;
    size_t there = mk_min(call->available, call->content.len) - call->pulled;
    size_t n = mk_min(mk_min(there, cap), call->pull_max);
    call->n_pulls++;
    if (n == 0 && (left || call->pull_error))
        return call->pull_error ? call->pull_error : -EAGAIN;
    if (n)
        memcpy(buffer, call->content.p + call->pulled, n);
    call->pulled += n;
    return (ssize_t)n;
}

static bool call_rewind(void *ctx)
{
    struct call *call = ctx;
    call->n_rewinds++;
    call->pulled = 0;
    return !call->cannot_rewind;
}

static const struct mk_upstream_request_body call_source = {.source = {.read = call_pull}},
                                             call_source_again = {.source = {.read = call_pull},
                                                                  .rewind = call_rewind};

/* ---- Actions of the caller ---- */

static void call_on_ready(void *ctx)
{
    struct call *call = ctx;
    call->is_ready = true;
    call->n_ready++;
}

static void call_on_error_text(void *ctx, mk_str text)
{
    struct call *call = ctx;
    mk_buf_add(&call->errors, text);
}

static inline void call_init(struct call *call)
{
    *call = (struct call){.read_size = 4096,
                          .head = -EAGAIN,
                          .end = -EAGAIN,
                          .pull_max = SIZE_MAX,
                          .available = SIZE_MAX,
                          .heads = mk_buf_growing(CALL_TEXT_MAX),
                          .body = mk_buf_growing(CALL_TEXT_MAX),
                          .trailers = mk_buf_growing(CALL_TEXT_MAX),
                          .errors = mk_buf_growing(CALL_TEXT_MAX)};
    call->ask = (struct mk_upstream_request_options){.upstream = &fake.upstream,
                                                     .method = MK_STR("GET"),
                                                     .target = MK_STR("/"),
                                                     .headers = call_fields,
                                                     .n_headers = 1,
                                                     .body_source_ctx = call,
                                                     .is_idempotent = true,
                                                     .on_stderr = call_on_error_text,
                                                     .conn.server = -1};
}

/* Sends a body from the source. */
static inline void call_send(struct call *call, mk_str content, bool has_length)
{
    call->content = content;
    call->ask.body_source = &call_source;
    call->ask.length = has_length ? (int64_t)content.len : MK_LENGTH_UNKNOWN;
}

static inline void call_fini(struct call *call)
{
    mk_upstream_request_free(call->client);
    mk_buf_free(&call->heads);
    mk_buf_free(&call->body);
    mk_buf_free(&call->trailers);
    mk_buf_free(&call->errors);
    fake_fini();
}

/* The header text and the parsed header fields must agree. */
static inline void call_check_lines(const struct call *call)
{
    char buffer[64 * 1024];
    struct mk_buf expected = mk_buf_fixed(buffer, sizeof buffer);
    mk_str text;
    size_t n;
    const struct mk_header *lines = mk_upstream_request_headers(call->client, &text, &n);
    for (size_t i = 0; i < n; i++)
        mk_header_append(&expected, lines[i].name, lines[i].value);
    assert_false(expected.failed);
    assert_true(mk_str_eq(text, mk_buf_str(&expected)));
}

static inline void call_note_head(struct call *call)
{
    call_check_lines(call);
    mk_str name, value;
    mk_buf_addf(&call->heads, "%u", mk_upstream_request_status(call->client));
    for (size_t i = 0; mk_upstream_request_header_at(call->client, i, &name, &value); i++)
        mk_buf_addf(&call->heads, " %.*s: %.*s", MK_STR_ARG(name), MK_STR_ARG(value));
    mk_buf_add_char(&call->heads, '|');
}

static inline void call_note_trailers(struct call *call)
{
    mk_str name, value;
    for (size_t i = 0; mk_upstream_request_trailer_at(call->client, i, &name, &value); i++)
        mk_buf_addf(&call->trailers, "%.*s: %.*s|", MK_STR_ARG(name), MK_STR_ARG(value));
}

/* Reads until no more data is available. */
static inline void call_go(struct call *call)
{
    static char buffer[CALL_READ_MAX];
    call->is_ready = false;
    while (call->head != 0) {
        call->head = mk_upstream_request_head(call->client);
        if (call->head < 0)
            return;
        call_note_head(call);
        mk_str whole;
        if (call->head == 0 && call->is_lazy && mk_upstream_request_buffered_body(call->client, &whole)) {
            assert_true(whole.len > 0);
            mk_buf_add(&call->body, whole);
            call->was_whole = true;
        }
    }
    if (call->spools)
        mk_upstream_request_spool(call->client, fake.request);
    while (!call->is_paused &&
           (call->end = mk_upstream_request_read(call->client, buffer, call->read_size)) > 0) {
        assert_true((size_t)call->end <= call->read_size);
        mk_buf_add(&call->body, mk_str_of(buffer, (size_t)call->end));
    }
    if (call->end == 0 && !call->is_paused)
        call_note_trailers(call);
}

static inline bool call_is_over(const struct call *call)
{
    return call->head == 0 ? call->end != -EAGAIN : call->head != -EAGAIN;
}

static inline struct mk_upstream_conn *call_link(void)
{
    return &fake.links[fake.n_taken - 1];
}

static inline void call_announce(struct call *call)
{
    if (fake.n_taken)
        fake_announce(call_link());
    if (call->is_ready && !call_is_over(call))
        call_go(call);
}

static inline void call_start(struct call *call)
{
    call->client = mk_upstream_request_start(NULL, &call->ask, call_on_ready, call);
    assert_non_null(call->client);
    assert_int_equal(call->n_ready, 0);
    call_go(call);
    call_announce(call);
}

/* Continues after each on_ready() until nothing more happens. */
static inline void call_settle(struct call *call)
{
    do {
        if (call->is_ready && !call_is_over(call))
            call_go(call);
        call->is_ready = false;
        call_announce(call);
    } while (fake_end_iteration() || (call->is_ready && !call_is_over(call)));
}

/* Delivers the response: `first` bytes at once, then `size` at a time, until it is complete or nothing
 * happens. */
static inline void call_run(struct call *call, size_t first, size_t size)
{
    call_start(call);
    call_settle(call);
    for (size_t n = first; !call_is_over(call); n = size) {
        struct mk_upstream_conn *l = call_link();
        if (l->state == -EAGAIN)
            fake_connect(l, 0);
        else if (!fake_arrive(l, n))
            return;
        call_settle(call);
    }
}

#endif
