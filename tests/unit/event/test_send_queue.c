/* SPDX-License-Identifier: Apache-2.0 */
#include "event/send_queue.h"

#include "unit/fake_stream.h"
#include "unit/test.h"

static struct fake_stream stream;
static struct mk_send_queue q;
static struct mk_buf scratch;
static char buffer[256];
static uint64_t sent;

static void setup(void)
{
    fake_stream_init(&stream, MK_STR(""));
    q = (struct mk_send_queue){0};
    scratch = mk_buf_fixed(buffer, sizeof buffer);
    sent = 0;
}

static void teardown(void)
{
    mk_send_queue_free(&q);
    fake_stream_fini(&stream);
}

static mk_err flush(const char *text, bool more)
{
    mk_buf_add(&scratch, mk_str_from_c(text));
    mk_err e = mk_send_queue_write(&q, &stream.stream, &scratch, more, &sent);
    assert_int_equal(scratch.len, 0);
    return e;
}

static mk_err push(void)
{
    return mk_send_queue_flush(&q, &stream.stream, &sent);
}

static void check(const char *out)
{
    assert_str(mk_buf_str(&stream.out), out);
    assert_int_equal(sent, strlen(out));
}

static void send_queue_writes_immediately_if_possible(void **state)
{
    (void)state;
    assert_int_equal(flush("hello", false), 0);
    check("hello");
    assert_int_equal(stream.n_writes, 1);
    assert_false(stream.more);
    assert_true(mk_send_queue_is_empty(&q));
    assert_int_equal(flush(" world", true), 0);
    check("hello world");
    assert_true(stream.more);
    assert_true(mk_send_queue_is_empty(&q));
}

static void send_queue_does_not_write_empty_data(void **state)
{
    (void)state;
    assert_int_equal(flush("", false), 0);
    assert_int_equal(push(), 0);
    assert_int_equal(stream.n_writes, 0);
    assert_true(mk_send_queue_is_empty(&q));
}

static void send_queue_partial_write_is_continued(void **state)
{
    (void)state;
    static const ssize_t plan[] = {1, 2, -EINTR, 3, 0};
    stream.plan = plan;
    assert_int_equal(flush("hello world", false), 0);
    check("hello world");
    assert_int_equal(stream.n_writes, 5);
}

static void send_queue_keeps_unwritten_data(void **state)
{
    (void)state;
    static const ssize_t plan[] = {4, -EAGAIN, 0}, again[] = {-EAGAIN, 0}, part[] = {3, -EAGAIN, 0};
    stream.plan = plan;
    assert_int_equal(flush("hello world", false), -EAGAIN);
    check("hell");
    assert_false(mk_send_queue_is_empty(&q));
    memset(buffer, '?', sizeof buffer); /* other connections reuse the scratch buffer */
    stream.plan = again;
    assert_int_equal(push(), -EAGAIN);
    check("hell");
    stream.plan = part;
    assert_int_equal(push(), -EAGAIN);
    check("hello w");
    assert_int_equal(push(), 0);
    check("hello world");
    assert_false(stream.more);
    assert_true(mk_send_queue_is_empty(&q));
    assert_int_equal(push(), 0);
    check("hello world");
}

static void send_queue_appends_to_pending_data(void **state)
{
    (void)state;
    static const ssize_t none[] = {-EAGAIN, -EAGAIN, 0}, little[] = {4, -EAGAIN, 0};
    stream.plan = none;
    assert_int_equal(flush("one ", false), -EAGAIN);
    assert_int_equal(flush("two ", false), -EAGAIN);
    stream.plan = little;
    assert_int_equal(flush("three ", false), -EAGAIN);
    check("one ");
    assert_int_equal(flush("four", false), 0);
    check("one two three four");
    assert_true(mk_send_queue_is_empty(&q));
}

static void send_queue_pending_data_is_sent_first_without_more_flag(void **state)
{
    (void)state;
    static const ssize_t none[] = {-EAGAIN, 0};
    stream.plan = none;
    assert_int_equal(flush("one", true), -EAGAIN);
    assert_int_equal(flush("", true), 0);
    check("one");
    /* otherwise the kernel would hold the data back for more data that never comes */
    assert_false(stream.more);
}

static void send_queue_error_is_final(void **state)
{
    (void)state;
    static const ssize_t plan[] = {2, -EPIPE, 0}, left[] = {-EAGAIN, -ECONNRESET, 0};
    stream.plan = plan;
    assert_int_equal(flush("hello", false), -EPIPE);
    check("he");
    assert_true(mk_send_queue_is_empty(&q));
    stream.plan = left;
    assert_int_equal(flush("x", false), -EAGAIN);
    assert_int_equal(flush("y", false), -ECONNRESET);
    mk_send_queue_free(&q);
    assert_true(mk_send_queue_is_empty(&q));
    mk_send_queue_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(send_queue_writes_immediately_if_possible, setup, teardown),
        fixture_test(send_queue_does_not_write_empty_data, setup, teardown),
        fixture_test(send_queue_partial_write_is_continued, setup, teardown),
        fixture_test(send_queue_keeps_unwritten_data, setup, teardown),
        fixture_test(send_queue_appends_to_pending_data, setup, teardown),
        fixture_test(send_queue_pending_data_is_sent_first_without_more_flag, setup, teardown),
        fixture_test(send_queue_error_is_final, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
