/* SPDX-License-Identifier: Apache-2.0 */
/* A fake worker, request and tunnel for src/websocket: the test delivers the client's input and records the
 * socket's output. Include it once. */
#ifndef MK_UNIT_WEBSOCKET_FIXTURE_H
#define MK_UNIT_WEBSOCKET_FIXTURE_H

#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/websocket.h>

#include "base/compiler.h"
#include "http/ws_frame_head.h"
#include "unit/fake_clock.h"
#include "unit/test.h"
#include "websocket/ws_socket.h"

enum { FIXTURE_OUT_MAX = 32 << 20, FIXTURE_FIELDS = 4, FIXTURE_PARTS = 8 };

struct mk_worker {
    int unused;
};

struct mk_request {
    struct mk_header fields[FIXTURE_FIELDS];
    size_t n_fields;
    const char *tunnel;
    /* The input of the client: `arrived` bytes have arrived, the socket has read `at`, and `in_end` is the
     * result of a read after the input. */
    mk_str in;
    size_t arrived, at;
    unsigned n_reads;
    int in_end;
    bool is_within; /* in a tunnel call: the socket may read input only then */
    bool is_resumed, is_aborted;
    void *parts[FIXTURE_PARTS];
    size_t n_parts;
};

struct mk_response {
    unsigned status;
    struct mk_header fields[FIXTURE_FIELDS];
    size_t n_fields;
    char buffer[512];
    struct mk_buf text;
    const struct mk_tunnel_ops *ops;
    void *ctx;
    int refuses; /* result of opening the tunnel */
};

static struct {
    struct mk_worker worker;
    struct mk_ws_worker ws;
    struct mk_request request;
    struct mk_response response;
    bool wants_input, has_ended, is_over;
    int ending;       /* last result of a pull */
    size_t read_max;  /* buffer size of a pull */
    size_t write_max; /* bytes that the client accepts before the buffer is full */
    struct mk_buf out;
} fixture;

/* ---- Functions called by the socket ---- */

void *mk_worker_data(const struct mk_worker *w, const struct mk_plugin *plugin)
{
    (void)w, (void)plugin;
    return &fixture.ws;
}

void mk_worker_set_data(struct mk_worker *w, const struct mk_plugin *plugin, void *data)
{
    (void)w, (void)plugin, (void)data;
}

struct mk_worker *mk_request_worker(const struct mk_request *r)
{
    (void)r;
    return &fixture.worker;
}

void mk_request_log(struct mk_request *r, enum mk_log_level level, const char *fmt, ...)
{
    (void)r, (void)level, (void)fmt;
}

mk_str mk_request_tunnel(const struct mk_request *r)
{
    return mk_str_from_c(r->tunnel);
}

mk_str mk_request_scheme(const struct mk_request *r)
{
    (void)r;
    return MK_STR("https");
}

mk_str mk_request_host(const struct mk_request *r)
{
    (void)r;
    return MK_STR("example.org");
}

bool mk_request_header_at(const struct mk_request *r, size_t i, mk_str *name, mk_str *value)
{
    if (i >= r->n_fields)
        return false;
    *name = r->fields[i].name;
    *value = r->fields[i].value;
    return true;
}

mk_str mk_request_header(const struct mk_request *r, mk_str name)
{
    for (size_t i = 0; i < r->n_fields; i++)
        if (mk_str_eq_nocase(r->fields[i].name, name))
            return r->fields[i].value;
    return MK_STR_NULL;
}

void *mk_request_alloc(struct mk_request *r, size_t size)
{
    void *p = r->n_parts < FIXTURE_PARTS ? mk_mem_alloc(size) : NULL;
    if (p)
        r->parts[r->n_parts++] = p;
    return p;
}

ssize_t mk_request_read(struct mk_request *r, char *buffer, size_t cap)
{
    if (!r->is_within)
        return -EAGAIN;
    r->n_reads++;
    size_t n = mk_min(mk_min(r->arrived, r->in.len) - r->at, cap);
    if (n == 0)
        return r->arrived > r->in.len ? r->in_end : -EAGAIN;
    memcpy(buffer, r->in.p + r->at, n);
    r->at += n;
    return (ssize_t)n;
}

void mk_request_resume(struct mk_request *r)
{
    r->is_resumed = true;
}

void mk_request_abort_tunnel(struct mk_request *r)
{
    r->is_aborted = r->is_resumed = true;
}

int mk_response_set_status(struct mk_response *r, unsigned status)
{
    r->status = status;
    return 0;
}

int mk_response_add_header(struct mk_response *r, mk_str name, mk_str value)
{
    size_t from = r->text.len;
    mk_buf_add(&r->text, value);
    if (r->n_fields == FIXTURE_FIELDS || r->text.failed)
        return -ENOMEM;
    r->fields[r->n_fields++] = (struct mk_header){name, mk_str_skip(mk_buf_str(&r->text), from)};
    return 0;
}

int mk_response_open_tunnel(struct mk_request *request, struct mk_response *r,
                            const struct mk_tunnel_ops *ops, void *ctx)
{
    (void)request;
    if (r->refuses) {
        r->status = 400;
        ops->source.close(ctx);
        return r->refuses;
    }
    r->ops = ops;
    r->ctx = ctx;
    r->status = 101;
    return 0;
}

/* ---- Tunnel ---- */

static inline void ws_fixture_setup(void)
{
    memset(&fixture, 0, sizeof fixture);
    fake_clock_init(1000000);
    fixture.request = (struct mk_request){.tunnel = "websocket", .in_end = -EAGAIN};
    fixture.response.text = mk_buf_fixed(fixture.response.buffer, sizeof fixture.response.buffer);
    fixture.wants_input = true;
    fixture.read_max = 16 * 1024;
    fixture.write_max = SIZE_MAX;
}

static inline void ws_fixture_init(void)
{
    ws_fixture_setup();
    fixture.out = mk_buf_growing(FIXTURE_OUT_MAX);
    assert_true(mk_ws_socket_worker_init(&fixture.ws, &fixture.worker));
}

static inline void ws_fixture_add_field(mk_str name, mk_str value)
{
    assert_true(fixture.request.n_fields < FIXTURE_FIELDS);
    fixture.request.fields[fixture.request.n_fields++] = (struct mk_header){name, value};
}

static inline void ws_fixture_close(void)
{
    if (fixture.response.ops && !fixture.is_over)
        fixture.response.ops->source.close(fixture.response.ctx);
    fixture.is_over = true;
}

static inline void ws_fixture_end(void)
{
    for (size_t i = 0; i < fixture.request.n_parts; i++)
        mk_mem_free(fixture.request.parts[i]);
    fake_clock_fini();
}

static inline void ws_fixture_pull(void)
{
    char buffer[64 * 1024];
    while (!fixture.has_ended && fixture.write_max) {
        ssize_t n = fixture.response.ops->source.read(fixture.response.ctx, buffer,
                                                      mk_min(fixture.read_max, sizeof buffer));
        fixture.ending = (int)n;
        if (n == -EAGAIN)
            return;
        fixture.has_ended = n <= 0;
        if (n <= 0)
            return;
        assert_true((size_t)n <= fixture.read_max);
        mk_buf_add(&fixture.out, mk_str_of(buffer, (size_t)n));
        fixture.write_max -= mk_min(fixture.write_max, (size_t)n);
    }
}

static inline void ws_fixture_fini(void)
{
    ws_fixture_close();
    mk_ws_socket_worker_fini(&fixture.ws);
    mk_buf_free(&fixture.out);
    ws_fixture_end();
}

/* Calls the tunnel as the server does after input or a resume. */
static inline void ws_fixture_run_tunnel(void)
{
    struct mk_request *r = &fixture.request;
    r->is_resumed = false;
    if (fixture.is_over)
        return;
    r->is_within = true;
    bool has_input = r->arrived > r->at;
    if (!r->is_aborted && fixture.wants_input &&
        !fixture.response.ops->on_input(fixture.response.ctx, has_input))
        fixture.wants_input = false;
    if (!r->is_aborted)
        ws_fixture_pull();
    r->is_within = false;
    if (r->is_aborted || (fixture.has_ended && (!fixture.wants_input || fixture.ending < 0)))
        ws_fixture_close();
    (void)fake_clock_end_iteration();
}

static inline void ws_fixture_run(void)
{
    do {
        ws_fixture_run_tunnel();
    } while (fixture.request.is_resumed && !fixture.is_over);
}

/* Delivers n more bytes, and the client's EOF after the last one. */
static inline void ws_fixture_deliver(size_t n)
{
    fixture.request.arrived += mk_min(n, fixture.request.in.len + 1 - fixture.request.arrived);
    ws_fixture_run();
}

static inline void ws_fixture_advance(uint64_t ms)
{
    fake_clock.now_ms += ms;
    for (int i = 0; i < 4 && fake_clock_fire(); i++)
        ws_fixture_run();
}

/* ---- Client ---- */

/* Appends a masked frame. */
static inline void add_frame(struct mk_buf *b, unsigned first, mk_str payload)
{
    static const uint8_t mask[4] = {0x12, 0x34, 0x56, 0x78};
    uint8_t head[MK_WS_HEAD_MAX];
    size_t n = mk_ws_frame_head_write(head, first, payload.len);
    head[1] |= 0x80;
    mk_buf_add(b, mk_str_of((const char *)head, n));
    mk_buf_add(b, mk_str_of((const char *)mask, sizeof mask));
    size_t from = b->len;
    mk_buf_add(b, payload);
    if (!b->failed && payload.len)
        mk_ws_frame_mask(b->p + from, payload.len, mask, 0);
}

#endif
