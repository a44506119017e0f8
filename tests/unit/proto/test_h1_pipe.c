/* SPDX-License-Identifier: Apache-2.0 */
/* Large content of a source that offers a pipe: it reaches the client whole, whatever its socket takes. */
#include "proto/h1_pipe.h"

#include <sys/resource.h>

#include "unit/proto/talk_case.h"

enum { LARGE = 300000 };

static struct {
    struct handlers_source source;
    int64_t length;
    size_t piece; /* at most */
    bool refuses; /* the pipe */
    bool waits;   /* the next time, and then for a resume */
    unsigned n_pulls, n_moves;
} own;

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    own.n_pulls++;
    return handlers_pull(ctx, room, mk_min(cap, own.piece));
}

static ssize_t to_pipe(void *ctx, int pipe_fd, size_t cap)
{
    char room[MK_OUTQ_SCRATCH];
    own.n_moves++;
    if (own.refuses)
        return -EOPNOTSUPP;
    if (own.waits) {
        own.waits = false;
        return -EAGAIN;
    }
    ssize_t n = handlers_pull(ctx, room, mk_min(mk_min(cap, sizeof room), own.piece));
    if (n > 0)
        assert_int_equal(write(pipe_fd, room, (size_t)n), n);
    return n;
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_source_ops ops = {.pull = pull};
    (void)data;
    own.source.request = request;
    assert_int_equal(mk_response_offer_pipe(response, to_pipe), -EINVAL);
    assert_int_equal(mk_response_set_source(response, &ops, &own.source, own.length), 0);
    assert_int_equal(mk_response_offer_pipe(response, to_pipe), 0);
    return MK_DONE;
}

static int start_piped(void **state)
{
    static const struct mk_handler handler = {
        .name = "piped", .methods = MK_METHOD_BIT(MK_METHOD_GET), .handle = handle};
    static struct mk_route route = {.pattern = {.text = MK_STR_INIT("/*"), .kind = MK_PATTERN_ALL},
                                    .handler = &handler};
    start(state);
    t.site.host.routes = &route;
    t.site.host.n_routes = 1;
    return 0;
}

static void set(uint64_t n)
{
    memset(&own, 0, sizeof own);
    own.source.n = n;
    own.source.fails_at = UINT64_MAX;
    own.length = (int64_t)n;
    own.piece = SIZE_MAX;
}

static void expect_content(uint64_t n)
{
    struct reply r;
    assert_int_equal(talk_reply(&t, &r, false), REPLY_WHOLE);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.content.len, n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(r.content.p[i], handlers_byte(i));
    reply_fini(&r);
}

static void large_content_goes_through_the_pipe(void **state)
{
    (void)state;
    set(LARGE);
    talk_open(&t, GET("/"));
    talk_on(&t);
    expect_content(LARGE);
    assert_int_equal(own.n_pulls, 1);
    assert_int_equal(own.n_moves, (LARGE - MK_H1_PIPE_FIRST + MK_OUTQ_SCRATCH - 1) / MK_OUTQ_SCRATCH);
    set(LARGE); /* on the same connection, in small pieces */
    own.piece = 1000;
    talk_say(&t, GET("/"));
    talk_on(&t);
    expect_content(LARGE);
    assert_int_equal(t.n_records, 2);
    assert_int_equal(t.content_sent[1], LARGE);
    talk_expect_state(&t, MK_CONN_IDLE);
}

static void a_client_without_room_gets_all_of_it(void **state)
{
    (void)state;
    set(LARGE);
    talk_open(&t, "");
    talk_set_room(&t, 4096);
    talk_say(&t, GET("/"));
    talk_work(&t);
    unsigned n_moves = own.n_moves;
    assert_true(own.source.at < LARGE);
    talk_work(&t);
    assert_int_equal(own.n_moves, n_moves); /* what is not taken is not asked for */
    talk_on(&t);
    expect_content(LARGE);
    talk_expect_state(&t, MK_CONN_IDLE);
}

static void a_source_may_wait(void **state)
{
    (void)state;
    set(LARGE);
    own.waits = true;
    talk_open(&t, GET("/"));
    talk_on(&t);
    assert_int_equal(own.n_moves, 1);
    assert_true(talk_heard(&t).len > MK_H1_PIPE_FIRST); /* what is there goes out */
    mk_request_resume(own.source.request);
    talk_on(&t);
    expect_content(LARGE);
}

static void content_that_cannot_go_there_is_copied(void **state)
{
    (void)state;
    set(LARGE);
    own.refuses = true;
    talk_open(&t, GET("/"));
    talk_on(&t);
    expect_content(LARGE);
    assert_int_equal(own.n_moves, 1);
    set(60000); /* little */
    talk_say(&t, GET("/"));
    talk_on(&t);
    expect_content(60000);
    set(LARGE);
    own.length = MK_LENGTH_UNKNOWN; /* in chunks */
    talk_say(&t, GET("/"));
    talk_on(&t);
    expect_content(LARGE);
    assert_int_equal(own.n_moves, 0);
}

static void set_files_max(rlim_t n)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = n ? n : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void without_descriptors_it_is_copied(void **state)
{
    (void)state;
    set(LARGE);
    talk_open(&t, "");
    assert_int_equal(t.service.pipe[0], -1);
    set_files_max(1);
    talk_say(&t, GET("/"));
    talk_on(&t);
    set_files_max(0);
    expect_content(LARGE);
    assert_int_equal(own.n_moves, 0);
    set(LARGE);
    talk_say(&t, GET("/"));
    talk_on(&t);
    expect_content(LARGE);
    assert_true(own.n_moves > 0);
}

/* And what one response leaves behind reaches no other. */
static void a_failure_shows(void **state)
{
    (void)state;
    set(LARGE);
    own.source.fails_at = LARGE / 2;
    talk_open(&t, GET("/"));
    talk_on(&t);
    assert_true(t.ended || t.reset);
    assert_true(talk_heard(&t).len >= LARGE / 2 && talk_heard(&t).len < LARGE);
    assert_int_equal(t.endings[0], MK_ENDING_ABORTED);
    set(LARGE);
    talk_open(&t, GET("/"));
    talk_on(&t);
    expect_content(LARGE);
}

static void a_client_may_go_away(void **state)
{
    (void)state;
    set(LARGE);
    talk_open(&t, "");
    talk_set_room(&t, 4096);
    talk_say(&t, GET("/"));
    talk_work(&t);
    mk_fd_close(&t.fd);
    talk_work(&t);
    assert_int_equal(t.service.n_conns, 0);
    assert_int_equal(t.endings[0], MK_ENDING_GONE);
    set(LARGE);
    talk_open(&t, GET("/"));
    talk_on(&t);
    expect_content(LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_content_goes_through_the_pipe, start_piped, stop),
        cmocka_unit_test_setup_teardown(a_client_without_room_gets_all_of_it, start_piped, stop),
        cmocka_unit_test_setup_teardown(a_source_may_wait, start_piped, stop),
        cmocka_unit_test_setup_teardown(content_that_cannot_go_there_is_copied, start_piped, stop),
        cmocka_unit_test_setup_teardown(without_descriptors_it_is_copied, start_piped, stop),
        cmocka_unit_test_setup_teardown(a_failure_shows, start_piped, stop),
        cmocka_unit_test_setup_teardown(a_client_may_go_away, start_piped, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
