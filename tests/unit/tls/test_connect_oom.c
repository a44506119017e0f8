/* SPDX-License-Identifier: Apache-2.0 */
/* Upstream TLS connections when memory runs out: each call fails or works as usual; nothing leaks. */
#include "unit/oom.h"
#include "unit/tls/client_fixture.h"

static struct tls_client_fixture c;
static char buffer[1 << 16];

/* Runs all operations of a connection on the client's side. Returns true if all succeeded. */
static bool run(void)
{
    ssize_t n = 0;
    if (tls_client_open(&c, "a.example") || tls_client_accept(&c) || tls_client_handshake(&c))
        return false;
    if (c.s.ops->write(&c.s, MK_STR("hello"), true) != 5 ||
        c.s.ops->read(&c.s, buffer, sizeof buffer) != -EAGAIN)
        return false;
    for (int i = 0; i < 20 && n >= 0; i++) /* writes until the socket buffer is full */
        n = c.s.ops->write(&c.s, mk_str_of(buffer, sizeof buffer), false);
    if (n != -EAGAIN)
        return false;
    tls_client_close(&c);
    if (tls_client_open(&c, "c.example") || tls_client_accept(&c))
        return false;
    return tls_client_handshake(&c) == -EPROTO && *c.why;
}

/* Repeats the step until no more allocations fail. */
static void fail_each(bool (*step)(void), void (*undo)(void))
{
    bool done = false;
    size_t n = 1;
    for (; !done && n < 100; n++) {
        size_t before = oom.n_live;
        oom.fail_at = n;
        oom.n_allocs = oom.n_failed = 0;
        bool went = step();
        done = !oom.n_failed;
        oom.fail_at = 0;
        assert_true(!done || went);
        undo();
        assert_true(oom.n_live <= before + 1); /* the thread keeps its buffers */
    }
    assert_true(done && n > 2);
}

static void undo_run(void)
{
    tls_client_close(&c);
    mk_tls_session_free(c.session);
    c.session = NULL;
}

static bool make(void)
{
    return mk_tls_client_new(&c.rules, &c.client, &c.w.problem) == 0;
}

static void undo_make(void)
{
    mk_tls_client_free(c.client);
    c.client = NULL;
}

static void connect_oom_leaks_nothing(void **state)
{
    (void)state;
    tls_client_init(&c);
    fail_each(run, undo_run);
    undo_make();
    fail_each(make, undo_make);
    tls_client_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(connect_oom_leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
