/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of an idle upstream connection that waits for the next request. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/tls/client_fixture.h"

/* Measured with OpenSSL 3.0: up to 13.3 KB. Later versions keep two record layers of 4.4 KB each (3.2), and
 * after the handshake the X25519MLKEM768 key of 7.7 KB (3.5): 28.5 to 31.1 KB with 3.5.6. No public function
 * frees them. All versions free the buffers of 16 KB (SSL_MODE_RELEASE_BUFFERS). Certificates belong to the
 * session. */
enum { IDLE_MAX = 24 * 1024, IDLE_MAX_SINCE_3_2 = 36 * 1024 };

static struct tls_client_fixture c;
static size_t live;

static void *on_alloc(size_t size, const char *file, int line)
{
    void *p = malloc(size);
    (void)file;
    (void)line;
    live += malloc_usable_size(p);
    return p;
}

static void on_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    live -= malloc_usable_size(p);
    free(p);
}

static void *on_realloc(void *old, size_t size, const char *file, int line)
{
    size_t before = malloc_usable_size(old);
    void *p = realloc(old, size);
    (void)file;
    (void)line;
    if (p || !size)
        live -= before;
    live += malloc_usable_size(p);
    return p;
}

static size_t measure(bool resumed)
{
    struct mk_tls_conn_info facts;
    tls_client_connect(&c, "a.example");
    mk_tls_conn_info_get(&c.s, &facts);
    assert_int_equal(facts.resumed, resumed);
    size_t before = live;
    c.s.ops->close(&c.s);
    size_t size = before - live;
    tls_client_close(&c);
    return size;
}

static size_t idle_max(void)
{
    return OPENSSL_version_major() > 3 || OPENSSL_version_minor() >= 2 ? IDLE_MAX_SINCE_3_2 : IDLE_MAX;
}

static void connect_idle_connection_memory_is_bounded(void **state)
{
    (void)state;
    tls_client_init(&c);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        assert_true(SSL_CTX_set_max_proto_version(c.client->ctx, version));
        mk_tls_session_free(c.session);
        c.session = NULL;
        size_t once = measure(false), again = measure(true);
        printf("%s: %zu bytes, resumed %zu\n", version == TLS1_2_VERSION ? "TLS 1.2" : "TLS 1.3", once,
               again);
        assert_true(once < idle_max() && again < idle_max());
    }
    tls_client_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(connect_idle_connection_memory_is_bounded)};
    if (!CRYPTO_set_mem_functions(on_alloc, on_realloc, on_free))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
