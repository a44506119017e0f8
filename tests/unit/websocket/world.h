/* SPDX-License-Identifier: Apache-2.0 */
/* A fake worker, request and tunnel for src/websocket: the test delivers the client's input and records the
 * socket's output. Included once. */
#ifndef MK_UNIT_WEBSOCKET_WORLD_H
#define MK_UNIT_WEBSOCKET_WORLD_H

#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/websocket.h>

#include "base/compiler.h"
#include "http/ws_frame_head.h"
#include "unit/fake_clock.h"
#include "unit/test.h"
#include "websocket/ws_socket.h"

enum { WORLD_OUT_MAX = 32 << 20, WORLD_FIELDS = 4, WORLD_PARTS = 8 };

struct mk_worker {
    int unused;
};

struct mk_request {
    struct mk_header fields[WORLD_FIELDS];
    size_t n_fields;
    const char *tunnel;
    /* Client input: `arrived` bytes have arrived, `at` were read; `in_end` is the result of a read after the
     * input. */
    mk_str in;
    size_t arrived, at;
    unsigned n_reads;
    int in_end;
    bool is_within; /* inside a tunnel call: input can be read only then */
    bool is_resumed, is_aborted;
    void *parts[WORLD_PARTS];
    size_t n_parts;
};

struct mk_response {
    unsigned status;
    struct mk_header fields[WORLD_FIELDS];
    size_t n_fields;
    char room[512];
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
    int ending;   /* last result of a pull */
    size_t room;  /* buffer size of a pull */
    size_t takes; /* bytes that the client accepts before the buffer is full */
    struct mk_buf out;
} world;

/* ---- Functions called by the socket ---- */

void *mk_worker_data(const struct mk_worker *w, const struct mk_plugin *plugin)
{
    (void)w, (void)plugin;
    return &world.ws;
}

void mk_worker_set_data(struct mk_worker *w, const struct mk_plugin *plugin, void *data)
{
    (void)w, (void)plugin, (void)data;
}

struct mk_worker *mk_request_worker(const struct mk_request *r)
{
    (void)r;
    return &world.worker;
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
    void *p = r->n_parts < WORLD_PARTS ? mk_mem_alloc(size) : NULL;
    if (p)
        r->parts[r->n_parts++] = p;
    return p;
}

ssize_t mk_request_read(struct mk_request *r, char *room, size_t cap)
{
    if (!r->is_within)
        return -EAGAIN;
    r->n_reads++;
    size_t n = mk_min(mk_min(r->arrived, r->in.len) - r->at, cap);
    if (n == 0)
        return r->arrived > r->in.len ? r->in_end : -EAGAIN;
    memcpy(room, r->in.p + r->at, n);
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
    if (r->n_fields == WORLD_FIELDS || r->text.failed)
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

static inline void world_setup(void)
{
    memset(&world, 0, sizeof world);
    fake_clock_init(1000000);
    world.request = (struct mk_request){.tunnel = "websocket", .in_end = -EAGAIN};
    world.response.text = mk_buf_fixed(world.response.room, sizeof world.response.room);
    world.wants_input = true;
    world.room = 16 * 1024;
    world.takes = SIZE_MAX;
}

static inline void world_init(void)
{
    world_setup();
    world.out = mk_buf_growing(WORLD_OUT_MAX);
    assert_true(mk_ws_socket_worker_init(&world.ws, &world.worker));
}

static inline void world_add_field(mk_str name, mk_str value)
{
    assert_true(world.request.n_fields < WORLD_FIELDS);
    world.request.fields[world.request.n_fields++] = (struct mk_header){name, value};
}

static inline void world_close(void)
{
    if (world.response.ops && !world.is_over)
        world.response.ops->source.close(world.response.ctx);
    world.is_over = true;
}

static inline void world_end(void)
{
    for (size_t i = 0; i < world.request.n_parts; i++)
        mk_mem_free(world.request.parts[i]);
    fake_clock_fini();
}

static inline void world_pull(void)
{
    char room[64 * 1024];
    while (!world.has_ended && world.takes) {
        ssize_t n =
            world.response.ops->source.read(world.response.ctx, room, mk_min(world.room, sizeof room));
        world.ending = (int)n;
        if (n == -EAGAIN)
            return;
        world.has_ended = n <= 0;
        if (n <= 0)
            return;
        assert_true((size_t)n <= world.room);
        mk_buf_add(&world.out, mk_str_of(room, (size_t)n));
        world.takes -= mk_min(world.takes, (size_t)n);
    }
}

static inline void world_fini(void)
{
    world_close();
    mk_ws_socket_worker_fini(&world.ws);
    mk_buf_free(&world.out);
    world_end();
}

/* Calls the tunnel as the server does after input or a resume. */
static inline void world_turn(void)
{
    struct mk_request *r = &world.request;
    r->is_resumed = false;
    if (world.is_over)
        return;
    r->is_within = true;
    bool has_input = r->arrived > r->at;
    if (!r->is_aborted && world.wants_input && !world.response.ops->on_input(world.response.ctx, has_input))
        world.wants_input = false;
    if (!r->is_aborted)
        world_pull();
    r->is_within = false;
    if (r->is_aborted || (world.has_ended && (!world.wants_input || world.ending < 0)))
        world_close();
    (void)fake_clock_end_turn();
}

static inline void world_settle(void)
{
    do {
        world_turn();
    } while (world.request.is_resumed && !world.is_over);
}

/* Delivers n more bytes, and the client's EOF after the last one. */
static inline void world_arrive(size_t n)
{
    world.request.arrived += mk_min(n, world.request.in.len + 1 - world.request.arrived);
    world_settle();
}

static inline void world_pass(uint64_t ms)
{
    fake_clock.now_ms += ms;
    for (int i = 0; i < 4 && fake_clock_fire(); i++)
        world_settle();
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
