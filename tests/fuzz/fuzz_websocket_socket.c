/* SPDX-License-Identifier: Apache-2.0 */
/* A client sends any bytes to an echo socket, split anywhere, and reads in any pieces: the same messages
 * arrive, the same bytes are returned, and the socket is closed once. */
#include "base/assert.h"

/* The fakes of the unit tests, without cmocka. */
#define MK_UNIT_TEST_H
#define assert_true(x)         MK_ASSERT(x)
#define assert_int_equal(a, b) MK_ASSERT((a) == (b))
#define assert_ptr_equal(a, b) MK_ASSERT((a) == (b))

#include "unit/websocket/echo_owner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 16 * 1024 };

struct result {
    struct mk_buf messages, out;
    unsigned code;
    char reason[MK_WEBSOCKET_REASON_MAX + 1];
};

static const struct mk_websocket_options kinds[] = {
    {.ops = &owner_ops, .message_max = 2000, .frame_max = 1000, .queue_max = 500},
    {.ops = &owner_ops, .message_max = 2000, .flags = MK_WEBSOCKET_COMPRESS},
    {.ops = &owner_ops,
     .message_max = 2000,
     .queue_max = 500,
     .compress_min = 1,
     .flags = MK_WEBSOCKET_COMPRESS | MK_WEBSOCKET_KEEP_CONTEXT},
};

static void arrive(size_t size, size_t write_max)
{
    while (fixture.request.arrived <= fixture.request.in.len && !fixture.is_over) {
        if (write_max)
            fixture.write_max = write_max;
        ws_fixture_deliver(size);
    }
    fixture.write_max = SIZE_MAX;
    ws_fixture_run();
}

static struct result play(unsigned kind, mk_str in, int in_end, size_t size, size_t write_max)
{
    ws_fixture_init();
    owner_init();
    ws_fixture_add_field(MK_STR("Sec-WebSocket-Extensions"),
                         MK_STR("permessage-deflate; client_max_window_bits"));
    fixture.request.in = in;
    fixture.request.in_end = in_end;
    MK_ASSERT(owner_open(&kinds[kind]) == 0);
    arrive(size, write_max);
    if (!fixture.is_over && in_end == -EAGAIN) {
        MK_ASSERT(mk_websocket_close(owner.socket, 1000, MK_STR_NULL) != -EINVAL);
        ws_fixture_run();
        ws_fixture_advance(6000);
    }
    MK_ASSERT(fixture.is_over);
    struct result r = {.messages = owner.received, .out = fixture.out, .code = owner.code};
    memcpy(r.reason, owner.reason, sizeof r.reason);
    fixture.out = mk_buf_growing(1);
    ws_fixture_fini();
    MK_ASSERT(owner.n_closes == 1);
    return r;
}

static void drop(struct result *r)
{
    mk_buf_free(&r->messages);
    mk_buf_free(&r->out);
}

/* Turns the fuzzer's frames into client frames, masked with zeros. */
static void add_masks(struct mk_buf *out, mk_str in)
{
    while (in.len >= MK_WS_HEAD_MIN) {
        uint8_t head[MK_WS_HEAD_MAX] = {0};
        memcpy(head, in.p, mk_min(in.len, sizeof head));
        head[1] &= 0x7f;
        size_t n = mk_min(mk_ws_frame_head_len(head), in.len);
        struct mk_ws_frame_head f;
        const char *problem = mk_ws_frame_head_parse(&f, head);
        head[1] |= 0x80;
        mk_buf_add(out, mk_str_of((const char *)head, n));
        mk_buf_add(out, mk_str_of("\0\0\0\0", 4));
        in = mk_str_skip(in, n);
        size_t len = problem || f.len > in.len ? in.len : (size_t)f.len;
        mk_buf_add(out, mk_str_first(in, len));
        in = mk_str_skip(in, len);
    }
}

/* The first bytes select the type of the socket, how the input ends, and how it is split. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int ends[] = {-EAGAIN, 0, -ECONNRESET};
    if (size < 3 || size > INPUT_MAX)
        return 0;
    mk_str text = mk_str_of((const char *)data + 3, size - 3);
    struct mk_buf masked = mk_buf_growing(8 * INPUT_MAX);
    if (data[0] & 0x80)
        mk_buf_add(&masked, text);
    else
        add_masks(&masked, text);
    unsigned kind = data[0] % 3u;
    int in_end = ends[data[1] % 3u];
    struct result whole = play(kind, mk_buf_str(&masked), in_end, SIZE_MAX / 2, 0);
    struct result pieces = play(kind, mk_buf_str(&masked), in_end, data[2] % 50u + 1, data[1] & 0x80 ? 7 : 0);
    MK_ASSERT(mk_str_eq(mk_buf_str(&whole.messages), mk_buf_str(&pieces.messages)));
    MK_ASSERT(whole.code == pieces.code && strcmp(whole.reason, pieces.reason) == 0);
    if (in_end != -ECONNRESET) /* a reset drops unread data */
        MK_ASSERT(mk_str_eq(mk_buf_str(&whole.out), mk_buf_str(&pieces.out)));
    drop(&whole);
    drop(&pieces);
    mk_buf_free(&masked);
    return 0;
}
