/* SPDX-License-Identifier: Apache-2.0 */
/* Content that goes into a pipe, past the client. */
#include "unit/client/call.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"

static int ends[2];

static struct mk_link *begin(struct call *call, const char *in, int in_end)
{
    assert_int_equal(pipe(ends), 0);
    fake_init();
    call_init(call);
    struct mk_link *l = fake_add(mk_str_from_c(in), in_end);
    l->is_gradual = true;
    call->is_paused = true; /* it reads no content by itself */
    return l;
}

/* The head arrives, with `n` bytes behind it. */
static void begin_content(struct call *call, struct mk_link *l, size_t n)
{
    call_start(call);
    assert_true(fake_arrive(l, sizeof HEAD - 1 + n));
    call_settle(call);
    assert_int_equal(call->head, 0);
}

static void end(struct call *call)
{
    call_fini(call);
    close(ends[0]);
    close(ends[1]);
}

/* What came through the pipe since. */
static void expect_piped(const char *text)
{
    char room[64];
    size_t len = strlen(text);
    assert_int_equal(read(ends[0], room, sizeof room), len);
    assert_memory_equal(room, text, len);
}

static ssize_t move(struct call *call, size_t cap)
{
    return mk_client_read_to_pipe(call->client, ends[1], cap);
}

static void content_goes_into_the_pipe_piece_by_piece(void **state)
{
    struct call call;
    (void)state;
    struct mk_link *l = begin(&call, HEAD "contents", -EAGAIN);
    begin_content(&call, l, 0);
    assert_int_equal(move(&call, 5), -EAGAIN);
    assert_true(fake_arrive(l, 6));
    assert_true(call.is_ready);
    assert_int_equal(move(&call, 5), 5);
    assert_int_equal(move(&call, 5), 1);
    assert_int_equal(move(&call, 5), -EAGAIN);
    assert_true(fake_arrive(l, 6));
    assert_int_equal(move(&call, 5), 2);
    expect_piped("contents");
    assert_int_equal(move(&call, 5), 0);
    assert_int_equal(l->how, MK_LINK_KEEP);
    end(&call);
}

static void what_was_read_with_the_head_is_read_first(void **state)
{
    struct call call;
    char room[64];
    (void)state;
    struct mk_link *l = begin(&call, HEAD "contents", -EAGAIN);
    begin_content(&call, l, 3);
    assert_int_equal(move(&call, 64), -EOPNOTSUPP);
    assert_int_equal(mk_client_read(call.client, room, sizeof room), 3);
    assert_true(fake_arrive(l, 5));
    assert_int_equal(move(&call, 64), 5);
    expect_piped("tents");
    assert_int_equal(l->how, MK_LINK_KEEP);
    end(&call);
}

static void what_follows_the_content_stays_out_of_the_pipe(void **state)
{
    struct call call;
    (void)state;
    struct mk_link *l = begin(&call, HEAD "contentsHTTP/1.1 200 OK\r\n", -EAGAIN);
    begin_content(&call, l, 0);
    assert_true(fake_arrive(l, SIZE_MAX));
    assert_int_equal(move(&call, 64), 8);
    expect_piped("contents");
    assert_int_equal(l->how, MK_LINK_CLOSE); /* that was not asked for */
    end(&call);
}

static void check_cut(int in_end)
{
    struct call call;
    struct mk_link *l = begin(&call, HEAD "con", in_end);
    begin_content(&call, l, 0);
    assert_true(fake_arrive(l, 3));
    assert_int_equal(move(&call, 64), 3);
    assert_true(fake_arrive(l, 1));
    assert_int_equal(move(&call, 64), -ECONNRESET);
    assert_true(*mk_client_problem(call.client));
    assert_int_equal(move(&call, 64), -ECONNRESET);
    assert_int_equal(l->how, MK_LINK_FAILED);
    end(&call);
}

static void content_that_is_cut_is_an_error(void **state)
{
    (void)state;
    check_cut(0);
    check_cut(-ECONNRESET);
}

static void silence_is_an_error(void **state)
{
    struct call call;
    (void)state;
    struct mk_link *l = begin(&call, HEAD "con", -EAGAIN);
    call.ask.limits.silence_ms = 100;
    begin_content(&call, l, 0);
    assert_true(fake_arrive(l, 3));
    assert_int_equal(move(&call, 64), 3);
    assert_int_equal(move(&call, 64), -EAGAIN);
    fake_pass(100);
    assert_int_equal(move(&call, 64), -ETIMEDOUT);
    end(&call);
}

static void some_content_cannot_go_into_a_pipe(void **state)
{
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    };
    struct call call;
    (void)state;
    for (size_t i = 0; i < MK_LEN(heads); i++) {
        struct mk_link *l = begin(&call, heads[i], -EAGAIN);
        call_start(&call);
        assert_true(fake_arrive(l, SIZE_MAX));
        call_settle(&call);
        assert_int_equal(call.head, 0);
        assert_int_equal(move(&call, 64), -EOPNOTSUPP);
        end(&call);
    }
    struct mk_link *l = begin(&call, HEAD "contents", -EAGAIN); /* TLS */
    l->has_no_pipe = true;
    begin_content(&call, l, 0);
    assert_true(fake_arrive(l, 8));
    assert_int_equal(move(&call, 64), -EOPNOTSUPP);
    call.is_paused = false;
    call_go(&call);
    assert_str(mk_buf_str(&call.body), "contents");
    end(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_goes_into_the_pipe_piece_by_piece),
        cmocka_unit_test(what_was_read_with_the_head_is_read_first),
        cmocka_unit_test(what_follows_the_content_stays_out_of_the_pipe),
        cmocka_unit_test(content_that_is_cut_is_an_error),
        cmocka_unit_test(silence_is_an_error),
        cmocka_unit_test(some_content_cannot_go_into_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
