/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/client.h"

#include <sys/stat.h>

#include "unit/tls/client_case.h"

static void expect_wrong(const char *file, const char *part)
{
    struct mk_tls_client *made = NULL;
    assert_int_equal(mk_tls_client_new(&c.rules, &made, &c.w.problem), -EINVAL);
    assert_null(made);
    assert_ptr_equal(c.w.problem.file, file);
    assert_contains(mk_str_from_c(c.w.problem.text), part);
    assert_int_equal(ERR_peek_error(), 0);
}

static void tls_client_missing_authorities_are_reported(void **state)
{
    (void)state;
    c.rules.authority = "/nowhere";
    expect_wrong(c.rules.authority, "cannot read the authority");
    setenv("SSL_CERT_FILE", "/nowhere", 1);
    setenv("SSL_CERT_DIR", "/nowhere", 1);
    c.rules.authority = NULL;
    expect_wrong(NULL, "the system has no trusted authorities");
    c.rules.verifies = false; /* this client needs no authorities */
    tls_client_load(&c);
}

static void tls_client_uses_system_authorities(void **state)
{
    (void)state;
    setenv("SSL_CERT_FILE", c.authority.file, 1);
    setenv("SSL_CERT_DIR", "/nowhere", 1);
    c.rules.authority = NULL;
    tls_client_load(&c);
    tls_client_connect(&c, "a.example");
}

/* A client that trusts only an intermediate authority accepts the certificates that this authority has
 * signed. */
static void tls_client_trusts_intermediate_authority(void **state)
{
    (void)state;
    struct issuer between = tls_client_issuer(&c.w, "between", &c.authority, (struct subject){0});
    tls_client_serve(&c,
                     tls_client_keypair(&c.w, "below", &between, (struct subject){.names = "DNS:a.example"}));
    c.rules.authority = between.file;
    tls_client_load(&c);
    tls_client_connect(&c, "a.example");
    tls_client_issuer_free(&between);
}

static void tls_client_certificate_is_validated(void **state)
{
    (void)state;
    struct mk_tls_keypair old =
        tls_client_keypair(&c.w, "old", NULL, (struct subject){.from = -20, .days = -10});
    struct mk_tls_keypair fine =
        tls_client_keypair(&c.w, "fine", NULL, (struct subject){.usage = "clientAuth"});
    c.rules.certificate = "/nowhere";
    expect_wrong(c.rules.certificate, "cannot read the certificate");
    c.rules.certificate = c.authority.file;
    expect_wrong(c.rules.certificate, "it contains no private key");
    c.rules.certificate = old.certificate;
    c.rules.key = old.key;
    tls_client_load(&c);
    assert_contains(mk_str_from_c(c.w.problem.text), "the certificate expired");
    c.rules.key = NULL;
    c.rules.certificate = fine.certificate;
    c.rules.key = old.certificate;
    expect_wrong(c.rules.key, "the key does not belong to the certificate");
    c.rules.certificate = NULL;
    expect_wrong(c.rules.key, "there is a key without a certificate");
}

static void tls_client_readable_key_is_reported(void **state)
{
    (void)state;
    c.rules.certificate =
        tls_client_keypair(&c.w, "open", &c.authority, (struct subject){.usage = "clientAuth"}).certificate;
    assert_int_equal(chmod(c.rules.certificate, 0644), 0);
    tls_client_load(&c);
    assert_string_equal(c.w.problem.file, c.rules.certificate);
    assert_contains(mk_str_from_c(c.w.problem.text), "others can read the key");
}

/* An exiting worker may free the client, which is plugin data, before the streams. */
static void tls_client_streams_may_outlive_client(void **state)
{
    (void)state;
    char buffer[16];
    tls_client_connect(&c, "a.example");
    mk_tls_client_free(c.client);
    c.client = NULL;
    assert_int_equal(c.w.s.ops->write(&c.w.s, MK_STR("more"), false), 4);
    tls_client_relay_all(&c);
    assert_int_equal(tls_client_read(&c.s, buffer, sizeof buffer), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(tls_client_missing_authorities_are_reported, setup),
        fixture_test(tls_client_uses_system_authorities, setup),
        fixture_test(tls_client_trusts_intermediate_authority, setup),
        fixture_test(tls_client_certificate_is_validated, setup),
        fixture_test(tls_client_readable_key_is_reported, setup),
        fixture_test(tls_client_streams_may_outlive_client, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
