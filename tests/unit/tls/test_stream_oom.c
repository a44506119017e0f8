/* SPDX-License-Identifier: Apache-2.0 */
/* TLS streams when memory runs out: each call fails or works as usual; nothing leaks. */
#include "unit/oom.h"
#include "unit/tls/fixture.h"

static struct tls_fixture w;
static char buffer[1 << 16];

/* Runs all operations of a connection. Returns true if all succeeded. */
static bool run(void)
{
    const char *why;
    ssize_t n = 0;
    if (tls_fixture_accept(&w, mk_str_of(NULL, 0)))
        return false;
    tls_fixture_set_client(&w);
    if (tls_fixture_handshake(&w, &why))
        return false;
    if (SSL_write(w.client, "hello", 5) != 5 || tls_fixture_read(&w, buffer, sizeof buffer) != 5)
        return false;
    if (w.s.ops->write(&w.s, MK_STR("head"), true) != 4)
        return false;
    for (int i = 0; i < 20 && n >= 0; i++) /* writes until the socket buffer is full */
        n = w.s.ops->write(&w.s, mk_str_of(buffer, sizeof buffer), false);
    if (n != -EAGAIN)
        return false;
    struct mk_tls_conn_info facts;
    mk_tls_conn_info_get(&w.s, &facts);
    return true;
}

static void stream_oom_leaks_nothing(void **state)
{
    (void)state;
    bool done = false;
    tls_fixture_init(&w);
    w.rules.clients = MK_TLS_CLIENTS_OPTIONAL;
    w.rules.client_authority = w.pair.certificate;
    tls_fixture_load(&w);
    SSL_CTX_use_certificate_file(w.clients, w.pair.certificate, SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(w.clients, w.pair.key, SSL_FILETYPE_PEM);
    size_t n = 1;
    for (; !done && n < 100; n++) {
        size_t before = oom.n_live;
        oom.fail_at = n;
        oom.n_allocs = oom.n_failed = 0;
        bool went = run();
        done = !oom.n_failed;
        oom.fail_at = 0;
        assert_true(!done || went);
        tls_fixture_close(&w);
        assert_true(oom.n_live <= before + 1); /* the thread keeps its buffers */
    }
    assert_true(done && n > 3);
    tls_fixture_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stream_oom_leaks_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
