/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 connections when memory runs out: the output stays valid HTTP to the last byte, every request that
 * began leaves one record, and nothing leaks. */
#include "unit/connection/fixture.h"
#include "unit/oom.h"

enum { RECEIVED_MAX = 1 << 20 };

static struct conn_fixture t;
static char received_text[RECEIVED_MAX];

/* The bytes that a client sends at once, and the number of responses if no allocation fails. */
static const struct dialog {
    const char *input;
    unsigned n_answers;
    enum { AS_USUAL, HALF_CLOSES, IS_SLOW } mode;
} dialogs[] = {
    {"GET /early HTTP/1.1\r\nHost: a\r\n\r\n", 1, AS_USUAL},
    {"GET /page.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"
     "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
     "GET /large HTTP/1.1\r\nHost: a\r\nRange: bytes=0-9,20-29\r\n\r\n",
     3, AS_USUAL},
    {"POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
     "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
     2, AS_USUAL},
    {"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /source?n=100000 HTTP/1.1\r\nHost: "
     "a\r\n\r\n",
     2, AS_USUAL},
    {"GET /early HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", 1, HALF_CLOSES},
    {"nonsense\r\n\r\n", 1, AS_USUAL},
    {"GET /mad?n=100000 HTTP/1.1\r\nHost: a\r\n\r\n", 1, AS_USUAL},
    {"GET /source?n=5000 HTTP/1.1\r\nHost: a\r\n\r\nGET /source?n=5000 HTTP/1.1\r\nHost: a\r\n\r\n"
     "GET /thread HTTP/1.1\r\nHost: a\r\n\r\n",
     3, IS_SLOW},
    {"POST /trailers HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: "
     "chunked\r\n\r\n3\r\nabc\r\n0\r\nA: "
     "1\r\nB: 2\r\n\r\n",
     1, AS_USUAL},
    {"GET /tunnel?n=100 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nhello",
     1, HALF_CLOSES},
    {"GET /tunnel?n=100000 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello", 1,
     IS_SLOW},
};

static void setup(void)
{
    conn_setup(&t);
    t.received = mk_buf_fixed(received_text, sizeof received_text);
    site_add(&t.site, "page.html", MK_STR("page"));
    site_add(&t.site, "page.html.gz", MK_STR("gzip"));
    static char large[5000];
    site_add(&t.site, "large", mk_str_of(large, sizeof large));
}

static bool open_dialog(const struct dialog *d)
{
    int ends[2];
    const struct mk_addr peer = {.is_unix = 1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(mk_fd_set_nonblock(ends[0]), 0);
    t.fd = ends[1];
    t.ended = t.reset = false;
    t.n_records = 0;
    mk_buf_clear(&t.received);
    t.read = 0;
    conn_send(&t, d->input);
    if (d->mode == HALF_CLOSES)
        shutdown(t.fd, SHUT_WR);
    t.conn = mk_conn_open(&t.manager, &mk_h1_ops, ends[0], &peer);
    if (!t.conn) {
        mk_fd_close(&ends[0]);
        return false;
    }
    if (d->mode == IS_SLOW)
        conn_set_send_buffer(&t, 1);
    t.conn->ops->advance(t.conn);
    return true;
}

/* Counts the responses, which must be well-formed; only the last one may be incomplete. */
static unsigned count_answers(void)
{
    unsigned n = 0;
    for (;;) {
        struct h1_response r;
        enum h1_response_result got = conn_response(&t, &r, false);
        h1_response_fini(&r);
        if (got == H1_RESPONSE_PARTIAL)
            assert_true(t.ended || t.reset);
        if (got != H1_RESPONSE_COMPLETE)
            return n;
        n++;
        if (r.status == 101)
            t.read = t.received.len; /* after a 101, the bytes belong to the tunnel */
    }
}

static const struct dialog *current;

static bool waits_for_thread(void)
{
    return strstr(current->input, "/thread");
}

/* Frees everything that the dialog allocated. */
static void forget_all(void)
{
    mk_fd_close(&t.fd);
    mk_conn_close_all(&t.manager, MK_OUTCOME_SHUTDOWN);
    mk_offload_fini(&t.manager.helper); /* a thread may still be running */
    assert_int_equal(mk_offload_init(&t.manager.helper, &t.loop), 0);
    mk_loop_run_tasks(&t.loop);
    mk_conn_free_freelist(&t.manager);
    mk_arena_cache_fini(&t.manager.arenas);
    mk_file_cache_evict_idle(&t.site.web.files);
    mk_file_cache_evict_idle(&t.site.web.files); /* evicts the files that finished requests had kept in use */
    assert_int_equal(t.site.web.files.n, 0);
}

static bool run_dialog(void)
{
    bool opened = open_dialog(current);
    if (opened && current->mode == IS_SLOW)
        conn_run_server(&t);
    for (int i = 0; opened && waits_for_thread() && i < 200; i++) {
        conn_run_for(&t, 1);
        if (t.n_records == current->n_answers || t.manager.n_conns == 0 || t.ended)
            break;
    }
    if (opened)
        conn_run(&t);
    bool well = oom.n_failed == 0;
    size_t at = oom.fail_at;
    oom.fail_at = 0; /* allocations of the test itself never fail */
    unsigned n = opened ? count_answers() : 0;
    assert_true(t.n_records <= current->n_answers + 1);
    if (well && n != current->n_answers)
        fail_msg("%u answers to %s", n, current->input);
    conn_expect_nothing(&t);
    oom.fail_at = at;
    forget_all();
    assert_int_equal(t.manager.out.len, 0);
    assert_null(t.manager.serving);
    return well && oom.n_failed == 0;
}

static void h1_oom_every_dialog_survives(void **state)
{
    (void)state;
    for (size_t i = 0; i < MK_LEN(dialogs); i++) {
        current = &dialogs[i];
        oom_at_each_allocation(run_dialog);
    }
}

static bool make_a_service(void)
{
    struct mk_conn_manager s;
    if (mk_conn_manager_init(&s, &t.loop, &t.site.web, &t.limits, &t.counters, MK_STR("Monkey")))
        return false;
    bool ok = mk_conn_alloc_buffers(&s);
    assert_true(ok == (s.input_buffer.in && s.out.p));
    mk_conn_manager_fini(&s);
    return ok;
}

static void h1_oom_service_fails_cleanly(void **state)
{
    (void)state;
    oom_at_each_allocation(make_a_service);
}

static bool acquire_clients(void)
{
    struct mk_client_limits p;
    bool ok = true;
    mk_client_limits_init(&p, 2);
    for (unsigned i = 0; i < 100; i++) {
        const struct mk_addr peer = {.ip = {[0] = 0x20, [6] = (uint8_t)i}};
        mk_err e = mk_client_limits_acquire(&p, &peer);
        assert_true(e == 0 || e == -ENOMEM);
        ok &= e == 0;
        if (!e)
            mk_client_limits_release(&p, &peer);
        if (!e && i % 2)
            ok &= mk_client_limits_acquire(&p, &peer) == 0;
    }
    mk_client_limits_fini(&p);
    return ok;
}

static void h1_oom_client_limits_fail_cleanly(void **state)
{
    (void)state;
    oom_at_each_allocation(acquire_clients);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(h1_oom_every_dialog_survives, setup),
        fixture_test(h1_oom_service_fails_cleanly, setup),
        fixture_test(h1_oom_client_limits_fail_cleanly, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
