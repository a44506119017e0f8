/* SPDX-License-Identifier: Apache-2.0 */
/* A session when memory runs out: streams fail, or the session fails, and nothing leaks. */
#include "unit/oom.h"

#include "unit/http2client/scripted_session.h"

enum { SCRIPT_MAX = 64 * 1024 };

static char text[SCRIPT_MAX];

static void add_head(struct mk_buf *out, uint32_t stream, unsigned flags)
{
    size_t from = out->len;
    mk_h2_frame_emit_head(out, 0, MK_H2_HEADERS, 0, stream);
    mk_hpack_encode_status(out, 200);
    mk_hpack_encode(out, MK_STR("x"), MK_STR("y"));
    mk_h2_frame_write_head(out->p + from, (uint32_t)(out->len - from - MK_H2_FRAME_HEAD), MK_H2_HEADERS,
                           flags, stream);
}

static void add_data(struct mk_buf *out, uint32_t stream, size_t len, unsigned flags)
{
    static const char body[8 * 1024];
    mk_h2_frame_emit_head(out, (uint32_t)len, MK_H2_DATA, flags, stream);
    mk_buf_add(out, mk_str_of(body, len));
}

/* A body that needs a larger queue, a head in two frames, and control frames. */
static mk_str script(void)
{
    struct mk_buf out = mk_buf_fixed(text, sizeof text);
    mk_h2_frame_emit_ping(&out, false, MK_STR("12345678"));
    add_head(&out, 1, MK_H2_END_HEADERS);
    add_data(&out, 1, 8 * 1024, 0);
    add_data(&out, 1, 100, MK_H2_END_STREAM);
    add_head(&out, 3, MK_H2_END_STREAM);
    mk_h2_frame_emit_head(&out, 0, MK_H2_CONTINUATION, MK_H2_END_HEADERS, 3);
    add_head(&out, 5, MK_H2_END_HEADERS);
    add_data(&out, 5, 3000, 0);
    mk_h2_frame_emit_rst_stream(&out, 5, MK_H2_INTERNAL_ERROR);
    return mk_buf_str(&out);
}

static void session_survives_each_failed_allocation(void **state)
{
    mk_str bytes = script();
    (void)state;
    for (size_t piece = 1000; piece <= SCRIPT_MAX; piece *= 8)
        for (oom.fail_at = 0;; oom.fail_at++) {
            size_t live = oom.n_live;
            oom.n_allocs = oom.n_failed = 0;
            scripted_session_run(bytes, piece);
            assert_int_equal(oom.n_live, live);
            if (oom.fail_at && !oom.n_failed)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(session_survives_each_failed_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
