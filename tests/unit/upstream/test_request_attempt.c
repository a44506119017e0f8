/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are made, fail, were kept, and what is asked once more. */
#include "unit/upstream/request_case.h"
#include "upstream/request_send.h"

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static char large[200000];

static void begin(struct call *call)
{
    fake_init();
    call_init(call);
}

static struct mk_upstream_conn *add_kept(int in_end)
{
    struct mk_upstream_conn *l = fake_add(MK_STR(""), in_end);
    l->was_kept = true;
    l->is_gradual = true;
    return l;
}

/* What arrives causes an event. */
static void run(struct call *call)
{
    for (unsigned i = 0; i < fake.n_links; i++)
        fake.links[i].is_gradual = true;
    call_run(call, SIZE_MAX, SIZE_MAX);
}

static void expect_reply(struct call *call)
{
    assert_int_equal(call->head, 0);
    assert_int_equal(call->end, 0);
    assert_str(mk_buf_str(&call->body), "hi");
    assert_string_equal(mk_upstream_request_error_text(call->client), "");
    call_fini(call);
}

static void expect_error(struct call *call, int error)
{
    assert_int_equal(call->head, error);
    assert_true(*mk_upstream_request_error_text(call->client));
    call_fini(call);
}

/* ---- Connecting ---- */

static void a_connection_may_take_its_time(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = fake_add(MK_STR(REPLY), -EAGAIN);
    l->state = -EAGAIN;
    call_start(&call);
    assert_int_equal(call.head, -EAGAIN);
    assert_int_equal(mk_upstream_request_read(call.client, (char[1]){0}, 1), -EAGAIN);
    mk_upstream_request_resume(call.client);
    fake_happen(l, MK_WRITABLE | MK_HUNG_UP); /* of an attempt of the connection: it goes on */
    assert_int_equal(call.n_ready, 0);
    assert_int_equal(l->n_writes, 0);
    fake_connect(l, 0);
    assert_int_equal(l->n_writes, 1);
    assert_int_equal(call.n_ready, 0);
    fake_happen(l, MK_READABLE);
    assert_int_equal(call.n_ready, 1);
    call_settle(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    expect_reply(&call);
}

static void why_there_is_no_connection_is_handed_on(void **state)
{
    static const int errors[] = {-EHOSTUNREACH, -EBUSY,  -ETIMEDOUT, -EPROTO,
                                 -ECONNREFUSED, -EMFILE, -ENOBUFS,   -EACCES};
    (void)state;
    for (size_t i = 0; i < MK_LEN(errors); i++) {
        struct call call;
        begin(&call);
        call.ask.limits.tries = 3; /* the connection has tried them all */
        struct mk_upstream_conn *l = fake_add(MK_STR(""), -EAGAIN);
        l->state = errors[i];
        call_start(&call);
        assert_true(fake_end_turn());
        assert_int_equal(call.n_ready, 1);
        expect_error(&call, errors[i]);

        begin(&call);
        l = fake_add(MK_STR(""), -EAGAIN);
        l->state = -EAGAIN;
        call_start(&call);
        fake_connect(l, errors[i]);
        assert_int_equal(call.n_ready, 1);
        call_settle(&call);
        expect_error(&call, errors[i]);
    }
}

static void an_exchange_may_be_freed_at_any_time(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake_add(MK_STR(""), -EAGAIN)->state = -EAGAIN;
    call_start(&call);
    call_fini(&call);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    for (size_t n = 0; n < sizeof REPLY - 2; n++) {
        begin(&call);
        fake_add(mk_str_of(REPLY, n), -EAGAIN);
        call_start(&call);
        call_fini(&call);
        assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_CLOSE);
    }
    mk_upstream_request_free(NULL);
}

/* ---- A kept connection: the request leaves at the end of the turn ---- */

static void a_request_over_a_kept_connection_leaves_when_the_turn_ends(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_kept(-EAGAIN);
    l->in = MK_STR(REPLY);
    call_send(&call, MK_STR("content"), true);
    call_start(&call);
    mk_upstream_request_resume(call.client);
    assert_int_equal(mk_upstream_request_head(call.client), -EAGAIN);
    assert_int_equal(l->n_writes + call.n_pulls, 0);
    assert_true(fake_end_turn());
    assert_int_equal(l->n_writes, 1);
    assert_int_equal(call.n_ready, 0);
    while (fake_arrive(l, SIZE_MAX))
        call_settle(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_KEEP);
    expect_reply(&call);
}

static void its_clock_begins_when_it_is_sent(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.limits.response_ms = 100;
    add_kept(-EAGAIN);
    call_start(&call);
    fake_pass(150); /* other requests of the turn took so long */
    assert_true(fake_end_turn());
    fake_pass(50);
    assert_int_equal(call.n_ready, 0);
    fake_pass(50);
    call_settle(&call);
    expect_error(&call, -ETIMEDOUT);
}

static void it_may_be_cancelled_before_it_leaves(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_kept(-EAGAIN);
    call_start(&call);
    call_fini(&call);
    assert_int_equal(l->n_writes, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
}

static void what_happens_to_the_connection_meanwhile_is_not_lost(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_kept(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    call_start(&call);
    assert_true(fake_arrive(l, 1)); /* its server ends it */
    call_settle(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    while (fake_arrive(fresh, SIZE_MAX))
        call_settle(&call);
    expect_reply(&call);
}

/* ---- A kept connection that its server closed ---- */

static void check_stale(int in_end)
{
    struct call call;
    begin(&call);
    struct mk_upstream_conn *l = add_kept(in_end), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    run(&call);
    assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
    assert_false(l->options.fresh);
    assert_true(fresh->options.fresh);
    assert_int_equal(fresh->options.avoid, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE); /* no fault of it */
    assert_int_equal(fresh->how, MK_UPSTREAM_CONN_KEEP);
    assert_int_equal(fake.retries, 100);
    assert_int_equal(fake.n_requests, 1);
    expect_reply(&call);
}

static void a_stale_connection_is_replaced(void **state)
{
    (void)state;
    check_stale(0);
    check_stale(-ECONNRESET);
    check_stale(-EPIPE);
}

static void a_stale_connection_shows_when_it_is_written_to(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_kept(-EAGAIN);
    fake_add(MK_STR(REPLY), -EAGAIN);
    l->takes = 0;
    l->takes_no_more = -EPIPE;
    run(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    expect_reply(&call);
}

static void the_new_connection_is_not_replaced(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    add_kept(0);
    struct mk_upstream_conn *l = fake_add(MK_STR(""), 0);
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_int_equal(fake.n_taken, 2);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_FAILED);
    expect_error(&call, -ECONNRESET);
}

static void what_has_an_answer_is_not_asked_again(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    struct mk_upstream_conn *l = add_kept(0);
    l->in = MK_STR("H");
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_FAILED);
    expect_error(&call, -ECONNRESET);
}

#define TOO_LATE "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate"

/* The server gave up waiting for another request when this one was on its way. */
static void a_408_on_a_kept_connection_is_asked_again(void **state)
{
    struct call call;
    (void)state;
    for (unsigned with_content = 0; with_content < 2; with_content++) {
        begin(&call);
        if (with_content)
            call_send(&call, MK_STR("content"), true);
        struct mk_upstream_conn *l = add_kept(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
        l->in = MK_STR(TOO_LATE);
        run(&call);
        assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
        assert_true(fresh->options.fresh);
        assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE); /* no fault of it */
        assert_str(mk_buf_str(&call.heads), "200|");
        expect_reply(&call);
    }
}

static void expect_408(struct call *call)
{
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(call);
    assert_int_equal(fake.n_taken, 1);
    assert_int_equal(call->head, 0);
    assert_int_equal(mk_upstream_request_status(call->client), 408);
    assert_str(mk_buf_str(&call->body), "late");
    call_fini(call);
}

static void a_408_is_handed_on_where_nothing_can_be_repeated(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    fake_add(MK_STR(TOO_LATE), 0); /* a new connection */
    expect_408(&call);
    begin(&call);
    call.ask.is_safe_to_repeat = false;
    add_kept(0)->in = MK_STR(TOO_LATE);
    expect_408(&call);
    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true); /* not all of it is still there */
    add_kept(0)->in = MK_STR(TOO_LATE);
    expect_408(&call);
}

/* What must not be repeated looks whether the connection lives. */
static void check_unsafe(int in_end, unsigned n_taken)
{
    struct call call;
    begin(&call);
    call.ask.method = MK_STR("POST");
    call.ask.is_safe_to_repeat = false;
    call.ask.content = MK_STR("pay");
    struct mk_upstream_conn *l = add_kept(in_end);
    if (in_end != -EAGAIN)
        l->arrived = 1; /* it was closed before */
    fake_add(MK_STR(REPLY), -EAGAIN);
    call_start(&call);
    assert_int_equal(fake.n_taken, 1); /* others send with it, at the end of the turn */
    assert_true(fake_end_turn());
    assert_int_equal(fake.n_taken, n_taken);
    assert_int_equal(l->out.len == 0, n_taken == 2);
    if (n_taken == 2) {
        fake_announce(call_link());
        call_settle(&call);
        assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
        expect_reply(&call);
        return;
    }
    l->in_end = 0;
    fake_arrive(l, 1);
    call_settle(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -ECONNRESET);
}

static void what_is_not_safe_is_sent_once(void **state)
{
    (void)state;
    check_unsafe(0, 2);
    check_unsafe(-ECONNRESET, 2);
    check_unsafe(-EAGAIN, 1);
}

static void what_is_not_safe_goes_on_if_not_a_byte_was_taken(void **state)
{
    struct call call;
    (void)state;
    for (size_t takes = 0; takes < 2; takes++) {
        begin(&call);
        call.ask.is_safe_to_repeat = false;
        struct mk_upstream_conn *l = add_kept(-EAGAIN);
        l->takes = takes;
        l->takes_no_more = -EPIPE;
        fake_add(MK_STR(REPLY), -EAGAIN);
        run(&call);
        if (takes)
            expect_error(&call, -EPIPE);
        else
            expect_reply(&call);
    }
}

/* An answer to what was not asked yet is none. */
static void a_kept_connection_that_speaks_first_is_not_used(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.is_safe_to_repeat = false;
    struct mk_upstream_conn *l = add_kept(-EAGAIN);
    l->in = MK_STR("HTTP/1.1 200 OK\r\n");
    l->arrived = 1;
    fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    expect_reply(&call);
}

/* ---- Content that is sent again ---- */

static void small_content_of_a_source_is_sent_again(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), true);
    struct mk_upstream_conn *l = add_kept(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    run(&call);
    assert_true(mk_str_ends(mk_buf_str(&fresh->out), MK_STR("\r\n\r\nhello")));
    assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
    assert_int_equal(call.n_rewinds, 0);
    expect_reply(&call);
}

static void the_rest_of_a_source_follows_what_is_sent_again(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, MK_STR("hello"), false);
    call.available = 2;
    struct mk_upstream_conn *l = add_kept(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    call_start(&call);
    fake_arrive(l, 1);
    call_settle(&call);
    assert_true(mk_str_ends(mk_buf_str(&fresh->out), MK_STR("\r\n\r\n0002\r\nhe\r\n")));
    call.available = 5;
    mk_upstream_request_resume(call.client);
    assert_true(
        mk_str_ends(mk_buf_str(&fresh->out), MK_STR("\r\n\r\n0002\r\nhe\r\n0003\r\nllo\r\n0\r\n\r\n")));
    fake_arrive(fresh, SIZE_MAX);
    call_settle(&call);
    expect_reply(&call);
}

static void send_large(struct call *call, unsigned n_taken)
{
    struct mk_upstream_conn *l = add_kept(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    fresh->is_gradual = true;
    run(call);
    assert_int_equal(fake.n_taken, n_taken);
    if (n_taken == 1) {
        expect_error(call, -ECONNRESET);
        return;
    }
    assert_true(mk_str_ends(mk_buf_str(&l->out), mk_str_of(large, sizeof large)));
    assert_true(mk_str_eq(mk_buf_str(&l->out), mk_buf_str(&fresh->out)));
    expect_reply(call);
}

static void large_content_is_sent_again_if_it_begins_again(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call.ask.content = mk_str_of(large, sizeof large);
    send_large(&call, 2);

    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    call.ask.source = &call_source_again;
    send_large(&call, 2);

    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    call.ask.source = &call_source_again;
    call.cannot_rewind = true;
    send_large(&call, 1);

    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    send_large(&call, 1);
}

/* What cannot begin again looks first, as what may not be repeated does. */
static void content_that_is_gone_once_sent_needs_a_connection_that_is_open(void **state)
{
    struct call call;
    (void)state;
    begin(&call);
    call_send(&call, mk_str_of(large, sizeof large), true);
    struct mk_upstream_conn *l = add_kept(0), *fresh = fake_add(MK_STR(REPLY), -EAGAIN);
    l->is_gradual = false; /* it was closed, and no event has said so */
    fresh->is_gradual = true;
    call_run(&call, SIZE_MAX, SIZE_MAX);
    assert_int_equal(l->out.len, 0);
    assert_int_equal(l->how, MK_UPSTREAM_CONN_CLOSE);
    assert_true(mk_str_ends(mk_buf_str(&fresh->out), mk_str_of(large, sizeof large)));
    expect_reply(&call);
}

/* ---- Other servers ---- */

static void begin_with(struct call *call, unsigned tries)
{
    begin(call);
    fake.n_servers = 3;
    call->ask.limits.tries = tries;
    call->ask.conn.server = 1;
    for (int i = 0; i < 3; i++) {
        struct mk_upstream_conn *l = fake_add(MK_STR(""), 0);
        l->server = (i + 1) % 3;
    }
}

static void another_server_is_tried(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.links[2].in = MK_STR(REPLY);
    run(&call);
    assert_int_equal(fake.links[0].options.server, 1);
    assert_int_equal(fake.links[0].options.avoid, 0);
    assert_int_equal(fake.links[1].options.server, -1);
    assert_int_equal(fake.links[1].options.avoid, 2);
    assert_false(fake.links[1].options.fresh);
    assert_int_equal(fake.links[2].options.avoid, 6);
    assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(fake.links[1].how, MK_UPSTREAM_CONN_FAILED);
    assert_int_equal(fake.retries, 98);
    assert_int_equal(mk_upstream_request_server(call.client), 0);
    assert_str(mk_upstream_request_server_name(call.client), "a:80");
    expect_reply(&call);
}

static void a_head_that_breaks_off_is_asked_of_another_server(void **state)
{
    struct call call;
    (void)state;
    for (unsigned is_safe = 0; is_safe < 2; is_safe++) {
        begin_with(&call, 3);
        call.ask.is_safe_to_repeat = is_safe;
        fake.links[0].in = MK_STR("HTTP/1.1 404 Not Found\r\nX-Half: ");
        fake.links[1].in = MK_STR(REPLY);
        run(&call);
        assert_int_equal(fake.n_taken, 1 + is_safe);
        assert_int_equal(fake.links[0].how, MK_UPSTREAM_CONN_FAILED);
        if (is_safe)
            expect_reply(&call);
        else
            expect_error(&call, -ECONNRESET);
    }
}

static void not_more_servers_are_tried_than_may_be(void **state)
{
    static const unsigned tries[] = {0, 1, 2};
    (void)state;
    for (size_t i = 0; i < MK_LEN(tries); i++) {
        struct call call;
        begin_with(&call, tries[i]);
        run(&call);
        assert_int_equal(fake.n_taken, tries[i] ? tries[i] : 1);
        expect_error(&call, -ECONNRESET);
    }
}

static void no_server_is_tried_twice(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 9);
    run(&call);
    assert_int_equal(fake.n_taken, 3);
    assert_int_equal(fake.retries, 98); /* the last one had no other */
    expect_error(&call, -ECONNRESET);
}

static void the_budget_bounds_retries(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.retries = 0;
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -ECONNRESET);
}

static void what_is_not_safe_goes_to_one_server(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    call.ask.is_safe_to_repeat = false;
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -ECONNRESET);
}

static void a_bad_response_is_final(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.links[0].in = MK_STR("SSH-2.0");
    run(&call);
    assert_int_equal(fake.n_taken, 1);
    expect_error(&call, -EPROTO);
}

static void a_stale_connection_of_another_server_is_replaced(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 2);
    fake.links[1].was_kept = true;
    fake.links[2].server = 2;
    fake.links[2].in = MK_STR(REPLY);
    run(&call);
    assert_int_equal(fake.links[1].how, MK_UPSTREAM_CONN_CLOSE);
    assert_true(fake.links[2].options.fresh);
    assert_int_equal(fake.links[2].options.avoid, 2);
    expect_reply(&call);
}

static void the_last_error_is_the_one_that_is_handed_on(void **state)
{
    struct call call;
    (void)state;
    begin_with(&call, 3);
    fake.links[1].state = -EHOSTUNREACH;
    run(&call);
    expect_error(&call, -EHOSTUNREACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_may_take_its_time),
        cmocka_unit_test(why_there_is_no_connection_is_handed_on),
        cmocka_unit_test(an_exchange_may_be_freed_at_any_time),
        cmocka_unit_test(a_request_over_a_kept_connection_leaves_when_the_turn_ends),
        cmocka_unit_test(its_clock_begins_when_it_is_sent),
        cmocka_unit_test(it_may_be_cancelled_before_it_leaves),
        cmocka_unit_test(what_happens_to_the_connection_meanwhile_is_not_lost),
        cmocka_unit_test(a_stale_connection_is_replaced),
        cmocka_unit_test(a_stale_connection_shows_when_it_is_written_to),
        cmocka_unit_test(the_new_connection_is_not_replaced),
        cmocka_unit_test(what_has_an_answer_is_not_asked_again),
        cmocka_unit_test(a_408_on_a_kept_connection_is_asked_again),
        cmocka_unit_test(a_408_is_handed_on_where_nothing_can_be_repeated),
        cmocka_unit_test(what_is_not_safe_is_sent_once),
        cmocka_unit_test(what_is_not_safe_goes_on_if_not_a_byte_was_taken),
        cmocka_unit_test(a_kept_connection_that_speaks_first_is_not_used),
        cmocka_unit_test(small_content_of_a_source_is_sent_again),
        cmocka_unit_test(the_rest_of_a_source_follows_what_is_sent_again),
        cmocka_unit_test(large_content_is_sent_again_if_it_begins_again),
        cmocka_unit_test(content_that_is_gone_once_sent_needs_a_connection_that_is_open),
        cmocka_unit_test(another_server_is_tried),
        cmocka_unit_test(a_head_that_breaks_off_is_asked_of_another_server),
        cmocka_unit_test(not_more_servers_are_tried_than_may_be),
        cmocka_unit_test(no_server_is_tried_twice),
        cmocka_unit_test(the_budget_bounds_retries),
        cmocka_unit_test(what_is_not_safe_goes_to_one_server),
        cmocka_unit_test(a_bad_response_is_final),
        cmocka_unit_test(a_stale_connection_of_another_server_is_replaced),
        cmocka_unit_test(the_last_error_is_the_one_that_is_handed_on),
    };
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)('a' + i * 7 / 3 % 26);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
