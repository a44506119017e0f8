/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 when memory runs out: the output stays well-formed, every request leaves at most one access record,
 * other requests on the connection are served or the connection closes, and nothing leaks. */
#include <sys/wait.h>

#include "unit/http2/fixture.h"
#include "unit/oom.h"

enum { RECEIVED_MAX = 1 << 20 };

static struct h2_conn h;
static char received_text[RECEIVED_MAX];

static struct mk_buf *say;
static struct h2_client *client;

static const char tunnel[] =
    ":method: CONNECT\n:protocol: x\n:scheme: http\n:authority: a\n:path: /tunnel?n=10\n";

/* ---- Client dialogs ---- */

static void request_plain(void)
{
    h2_get(client, say, 1, "/early");
    h2_get(client, say, 3, "/page.html");
    h2_get(client, say, 5, "/nothing");
    h2_send_request(client, say, 7, "GET", "/large", true,
                    "range: bytes=0-9,20-29\ncookie: a=b\ncookie: c=d\n");
}

static void request_with_body(void)
{
    h2_send_request(client, say, 1, "POST", "/sink", false, "");
    h2_send_request(client, say, 3, "POST", "/echo", false, "content-length: 3\nexpect: 100-continue\n");
    h2_send_request(client, say, 5, "POST", "/trailers", false, "te: trailers\n");
    h2_send_request(client, say, 7, "POST", "/slow?ms=5", false, "");
    h2_send_data(client, say, 7, MK_STR("unread"), true);
    h2_send_data(client, say, 1, MK_STR("abc"), true);
    h2_send_data(client, say, 3, MK_STR("abc"), true);
    h2_send_data(client, say, 5, MK_STR("abc"), false);
    h2_send_headers(client, say, 5, MK_H2_END_STREAM, "x-trailer: x\n");
}

static void request_in_pieces(void)
{
    struct mk_buf block = mk_buf_growing(1000);
    h2_pack(&block, ":method: GET\n:scheme: http\n:authority: a\n:path: /early\n");
    h2_expect(client, 1);
    h2_send_frame(say, MK_H2_HEADERS, MK_H2_END_STREAM, 1, mk_str_first(mk_buf_str(&block), 3));
    h2_send_frame(say, MK_H2_CONTINUATION, MK_H2_END_HEADERS, 1, mk_str_skip(mk_buf_str(&block), 3));
    mk_buf_free(&block);
}

static void request_large(void)
{
    h2_get(client, say, 1, "/source?n=60000");
    h2_get(client, say, 3, "/mad?n=20000");
    h2_get(client, say, 5, "/mad?n=100000");
    h2_get(client, say, 7, "/thread");
}

static void request_tunnel(void)
{
    h2_send_headers(client, say, 1, 0, tunnel);
    h2_send_data(client, say, 1, MK_STR("hear"), true);
}

static void send_invalid(void)
{
    h2_get(client, say, 1, "/never");
    h2_send_frame(say, MK_H2_PUSH_PROMISE, 0, 1, MK_STR(""));
}

static const struct dialog {
    void (*say)(void);
    unsigned n_streams;
    /* is_slow: the client reads nothing at first; ends: the dialog closes the connection */
    bool is_slow, ends;
} dialogs[] = {
    {.say = request_plain, .n_streams = 4},
    {.say = request_with_body, .n_streams = 4},
    {.say = request_in_pieces, .n_streams = 1},
    {.say = request_large, .n_streams = 4},
    {.say = request_large, .n_streams = 4, .is_slow = true},
    {.say = request_tunnel, .n_streams = 1},
    {.say = send_invalid, .n_streams = 1, .ends = true},
};

static const struct dialog *current;

/* Reads the properties of the request, as access log plugins do. */
static void read_record(const struct mk_access_record *record, void *data)
{
    static const char *const names[] = {"host", "cookie", "user-agent"};
    for (size_t i = 0; i < MK_LEN(names); i++) {
        mk_str value = mk_request_header(record->request, mk_str_from_c(names[i]));
        assert_true(value.len == 0 || value.p[0]);
    }
    conn_on_done(record, data);
}

static void setup(void)
{
    h2_conn_init(&h);
    h.conn.site.web.on_record = read_record;
    h.conn.limits.request.tunnel_ms = 10000;
    h.conn.received = mk_buf_fixed(received_text, sizeof received_text);
    say = &h.say;
    client = &h.client;
    site_add(&h.conn.site, "page.html", MK_STR("page"));
    static char large[5000];
    site_add(&h.conn.site, "large", mk_str_of(large, sizeof large));
}

/* ---- Running a dialog ---- */

static bool connect_it(void)
{
    int ends[2];
    struct conn_fixture *t = &h.conn;
    const struct mk_addr peer = {.is_unix = 1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(mk_fd_set_nonblock(ends[0]), 0);
    t->fd = ends[1];
    t->ended = t->reset = false;
    t->n_records = 0;
    mk_buf_clear(&t->received);
    t->read = 0;
    h2_conn_send(&h);
    mk_buf_free(&h.say);
    t->conn = mk_conn_open(&t->manager, &mk_h1_ops, ends[0], &peer);
    if (!t->conn) {
        mk_fd_close(&ends[0]);
        return false;
    }
    if (current->is_slow)
        conn_set_send_buffer(t, 1);
    t->conn->ops->advance(t->conn);
    return true;
}

/* Allocations of the test itself do not fail. */
static void prepare(size_t fail_at)
{
    oom.fail_at = 0;
    h2_init(&h.client);
    h.say = mk_buf_growing(1 << 20);
    h2_send_preface(&h.client, &h.say);
    current->say();
    oom.fail_at = fail_at;
    oom.n_allocs = 0;
}

/* Returns whether the client has received the end of each stream. The client's allocations neither fail nor
 * count. */
static bool has_received_all(void)
{
    size_t fail_at = oom.fail_at, n_allocs = oom.n_allocs;
    oom.fail_at = 0;
    h2_conn_receive(&h);
    oom.fail_at = fail_at;
    oom.n_allocs = n_allocs;
    for (unsigned i = 0; i < h.client.n; i++) {
        if (!h.client.at[i].ended && !h.client.at[i].reset)
            return false;
    }
    return true;
}

static bool is_done(void)
{
    struct conn_fixture *t = &h.conn;
    return t->n_records == current->n_streams || t->manager.n_conns == 0 || t->ended || t->reset ||
           has_received_all();
}

/* Every stream has a response or an error, or the connection has closed. */
static void check(bool well)
{
    h2_conn_receive(&h);
    bool over = h.conn.ended || h.conn.reset;
    assert_true(h.conn.n_records <= current->n_streams);
    for (unsigned i = 0; i < h.client.n; i++) {
        const struct h2_stream *s = &h.client.at[i];
        if (!s->ended && !s->reset && !over)
            fail_msg("stream %u has no result after allocation %zu", s->id, oom.fail_at);
        if (well && !current->ends && !s->ended)
            fail_msg("no response on stream %u", s->id);
    }
    assert_true(over || !well || h.conn.n_records == current->n_streams);
}

static void forget_all(void)
{
    struct conn_fixture *t = &h.conn;
    mk_fd_close(&t->fd);
    mk_conn_close_all(&t->manager, MK_OUTCOME_SHUTDOWN);
    mk_offload_fini(&t->manager.helper); /* a thread may still be running */
    assert_int_equal(mk_offload_init(&t->manager.helper, &t->loop), 0);
    mk_loop_run_tasks(&t->loop);
    mk_conn_free_freelist(&t->manager);
    mk_arena_cache_fini(&t->manager.arenas);
    mk_file_cache_evict_idle(&t->site.web.files);
    /* evicts the files that finished requests had kept in use */
    mk_file_cache_evict_idle(&t->site.web.files);
    assert_int_equal(t->site.web.files.n, 0);
    h2_fini(&h.client);
    mk_buf_free(&h.say);
}

static bool run_dialog(void)
{
    struct conn_fixture *t = &h.conn;
    size_t fail_at = oom.fail_at;
    prepare(fail_at);
    bool opened = connect_it();
    if (opened && current->is_slow)
        conn_run_server(t);
    for (int i = 0; opened && i < 100 && !is_done(); i++)
        conn_run_for(t, 1);
    if (opened)
        conn_run(t);
    bool well = oom.n_failed == 0;
    oom.fail_at = 0;
    if (opened)
        check(well);
    oom.fail_at = fail_at;
    size_t n = oom.n_allocs;
    forget_all();
    oom.n_allocs = n;
    assert_int_equal(t->manager.out.len, 0);
    assert_null(t->manager.serving);
    return well && oom.n_failed == 0;
}

/* A failed assertion in the child ends its main() with a non-zero status. */
static pid_t start_dialog(const struct dialog *dialog)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    current = dialog;
    setup();
    oom_at_each_allocation(run_dialog);
    h2_conn_fini(&h);
    exit(0);
}

/* The dialogs mostly wait, so each one has its own process, and all run in parallel. */
static void h2_oom_every_dialog_survives(void **state)
{
    (void)state;
    pid_t pids[MK_LEN(dialogs)];
    for (size_t i = 0; i < MK_LEN(dialogs); i++)
        assert_true((pids[i] = start_dialog(&dialogs[i])) > 0);
    for (size_t i = 0; i < MK_LEN(dialogs); i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        if (status != 0)
            fail_msg("dialog %zu fails", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h2_oom_every_dialog_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
