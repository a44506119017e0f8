/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "unit/test.h"
#include "upstream/gateway_content.h"

struct mk_spool {
    mk_str text;
};

struct mk_request {
    int64_t length;
    int answer; /* of mk_spool_request() */
    struct mk_spool spool;
    unsigned n_read, n_resumed;
};

int64_t mk_request_length(const struct mk_request *r)
{
    return r->length;
}

void mk_request_resume(struct mk_request *r)
{
    r->n_resumed++;
}

ssize_t mk_request_read(struct mk_request *r, char *room, size_t cap)
{
    (void)room, (void)cap;
    r->n_read++;
    return -EAGAIN;
}

int mk_spool_request(struct mk_request *r, uint64_t max, struct mk_spool **out)
{
    assert_int_equal(max, 0);
    *out = r->answer ? NULL : &r->spool;
    return r->answer;
}

uint64_t mk_spool_length(const struct mk_spool *s)
{
    return s->text.len;
}

ssize_t mk_spool_read(const struct mk_spool *s, char *room, size_t cap, uint64_t at)
{
    mk_str rest = mk_str_first(mk_str_skip(s->text, (size_t)at), cap);
    memcpy(room, rest.p, rest.len);
    return (ssize_t)rest.len;
}

static void content_of_unknown_length_gets_one_and_can_be_sent_again(void **state)
{
    struct mk_request r = {.length = -1, .answer = -EAGAIN, .spool = {MK_STR("hello")}};
    struct mk_gateway_content c = {0};
    struct mk_upstream_request_options ask = {0};
    char room[4];
    (void)state;
    assert_int_equal(mk_gateway_content_receive(&c, &r, true), -EAGAIN); /* also with `stream` */
    r.answer = 0;
    assert_int_equal(mk_gateway_content_receive(&c, &r, true), 0);
    mk_gateway_content_add(&c, &ask);
    assert_int_equal(ask.length, 5);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask.source->source.pull(ask.source_ctx, room, 4), 4);
        assert_memory_equal(room, "hell", 4);
        assert_int_equal(ask.source->source.pull(ask.source_ctx, room, 4), 1);
        assert_int_equal(ask.source->source.pull(ask.source_ctx, room, 4), 0);
        assert_true(ask.source->rewind(ask.source_ctx));
    }
}

static void content_of_a_known_length_is_streamed_on_wish(void **state)
{
    struct mk_request r = {.length = 7, .answer = -EIO};
    struct mk_gateway_content c = {0};
    struct mk_upstream_request_options ask = {0};
    char room[4];
    (void)state;
    assert_int_equal(mk_gateway_content_receive(&c, &r, false), -EIO);
    assert_int_equal(mk_gateway_content_receive(&c, &r, true), 0);
    mk_gateway_content_add(&c, &ask);
    assert_int_equal(ask.length, 7);
    assert_null(ask.source->rewind);
    assert_int_equal(ask.source->source.pull(ask.source_ctx, room, 4), -EAGAIN);
    assert_true(r.n_read == 0 && r.n_resumed == 1);
    c.is_called = true;
    assert_int_equal(ask.source->source.pull(ask.source_ctx, room, 4), -EAGAIN);
    assert_true(r.n_read == 1 && r.n_resumed == 1);
}

static void a_request_without_content_is_not_read(void **state)
{
    struct mk_request r = {.answer = -EIO};
    struct mk_gateway_content c = {0};
    struct mk_upstream_request_options ask = {0};
    (void)state;
    assert_int_equal(mk_gateway_content_receive(&c, &r, false), 0);
    mk_gateway_content_add(&c, &ask);
    assert_true(ask.length == 0 && !ask.source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_of_unknown_length_gets_one_and_can_be_sent_again),
        cmocka_unit_test(content_of_a_known_length_is_streamed_on_wish),
        cmocka_unit_test(a_request_without_content_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
