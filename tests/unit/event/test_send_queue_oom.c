/* SPDX-License-Identifier: Apache-2.0 */
/* A slow connection when memory runs out: pushing fails, and data queued before stays in order. */
#include "unit/fake_stream.h"
#include "unit/oom.h"

#include "event/send_queue.h"

static bool queue_and_send(void)
{
    static const ssize_t none[] = {-EAGAIN, -EAGAIN, -EAGAIN, 0};
    char buffer[64];
    char taken[256];
    struct fake_stream stream;
    struct mk_send_queue q = {0};
    struct mk_buf scratch = mk_buf_fixed(buffer, sizeof buffer);
    uint64_t sent = 0;
    bool ok = true;
    fake_stream_init(&stream, MK_STR(""));
    stream.out = mk_buf_fixed(taken, sizeof taken);
    stream.plan = none;
    struct mk_buf kept = mk_buf_fixed((char[64]){0}, 64);
    for (int i = 0; i < 3; i++) {
        mk_buf_addf(&scratch, "piece %d.", i);
        mk_err e = mk_send_queue_write(&q, &stream.stream, &scratch, false, &sent);
        assert_true(e == -EAGAIN || e == -ENOMEM);
        if (e == -EAGAIN)
            mk_buf_addf(&kept, "piece %d.", i);
        ok &= e == -EAGAIN;
    }
    assert_int_equal(mk_send_queue_flush(&q, &stream.stream, &sent), 0);
    assert_true(mk_str_eq(mk_buf_str(&stream.out), mk_buf_str(&kept)));
    assert_int_equal(sent, kept.len);
    return ok;
}

static void send_queue_oom_on_slow_connection_fails(void **state)
{
    (void)state;
    oom_at_each_allocation(queue_and_send);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(send_queue_oom_on_slow_connection_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
