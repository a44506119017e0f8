/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/context.h"

#include <openssl/ocsp.h>
#include <time.h>

#include "tls/conn_info.h"
#include "unit/tls/fixture.h"

static struct tls_fixture w;

static void setup(void)
{
    tls_fixture_setup(&w);
}

static void expect_wrong(const char *file, const char *part)
{
    struct mk_tls_context *c = NULL;
    assert_int_equal(mk_tls_context_new(&w.rules, &c, &w.problem), -EINVAL);
    assert_null(c);
    if (file)
        assert_string_equal(w.problem.file, file);
    else
        assert_null(w.problem.file);
    assert_contains(mk_str_from_c(w.problem.text), part);
    assert_int_equal(ERR_peek_error(), 0);
}

static void expect_odd(const char *file, const char *part)
{
    tls_fixture_load(&w);
    assert_string_equal(w.problem.file, file);
    assert_contains(mk_str_from_c(w.problem.text), part);
    mk_tls_context_free(w.context);
    w.context = NULL;
}

static void context_loads_certificate(void **state)
{
    (void)state;
    time_t now = time(NULL);
    tls_fixture_load(&w);
    assert_string_equal(w.problem.text, "");
    int64_t expires = mk_tls_context_valid_until(w.context);
    assert_true(expires > now + 29 * 86400 && expires < now + 31 * 86400);
}

static void context_loads_two_key_types(void **state)
{
    (void)state;
    struct mk_tls_keypair pairs[2] = {w.pair, tls_fixture_keypair(&w, "rsa", EVP_RSA_gen(2048), -1, 10)};
    w.rules.pairs = pairs;
    w.rules.n_pairs = 2;
    tls_fixture_load(&w);
    /* the earliest expiry counts */
    assert_true(mk_tls_context_valid_until(w.context) < time(NULL) + 11 * 86400);
    SSL_CTX_set1_sigalgs_list(w.clients, "RSA-PSS+SHA256");
    tls_fixture_connect(&w);
    assert_int_equal(EVP_PKEY_get_base_id(X509_get0_pubkey(SSL_get0_peer_certificate(w.client))),
                     EVP_PKEY_RSA);
    tls_fixture_close(&w);
    SSL_CTX_set1_sigalgs_list(w.clients, "ECDSA+SHA256:RSA-PSS+SHA256");
    tls_fixture_connect(&w);
    assert_int_equal(EVP_PKEY_get_base_id(X509_get0_pubkey(SSL_get0_peer_certificate(w.client))),
                     EVP_PKEY_EC);
}

static void context_rejects_duplicate_key_type(void **state)
{
    (void)state;
    struct mk_tls_keypair pairs[2] = {w.pair, tls_fixture_keypair(&w, "other", EVP_EC_gen("P-256"), -1, 10)};
    w.rules.pairs = pairs;
    w.rules.n_pairs = 2;
    expect_wrong(pairs[1].certificate, "same key type");
}

static void context_without_certificate_needs_challenges(void **state)
{
    (void)state;
    w.rules.n_pairs = 0;
    expect_wrong(NULL, "expected 1 to ");
    w.rules.challenges = w.folder.path;
    tls_fixture_load(&w);
}

static void context_unreadable_files_are_reported(void **state)
{
    (void)state;
    const char *key = w.pair.key;
    w.pair.key = tls_fixture_path(&w, "missing");
    expect_wrong(w.pair.key, "cannot read the key: No such file");
    w.pair.key = w.folder.path;
    expect_wrong(w.pair.key, "Is a directory");
    folder_add(&w.folder, "empty", MK_STR(""));
    w.pair.key = tls_fixture_path(&w, "empty");
    expect_wrong(w.pair.key, "the file is empty");
    w.pair.key = "/dev/zero";
    expect_wrong(w.pair.key, "it is not a file");
    w.pair.key = key;
    w.pair.certificate = "/nowhere/at/all.pem";
    expect_wrong(w.pair.certificate, "cannot read the certificate: No such file");
}

static void context_malformed_files_are_reported(void **state)
{
    (void)state;
    const char *certificate = w.pair.certificate, *key = w.pair.key;
    folder_add(&w.folder, "text", MK_STR("This is no certificate.\n"));
    w.pair.certificate = tls_fixture_path(&w, "text");
    expect_wrong(w.pair.certificate, "it contains no certificate: expected PEM");
    w.pair.certificate = certificate;
    w.pair.key = w.paths[w.n_paths - 1];
    expect_wrong(w.pair.key, "it contains no private key: expected PEM");
    w.pair.key = certificate;
    expect_wrong(w.pair.key, "it contains no private key");
    w.pair.key = NULL; /* the key is in the certificate file */
    expect_wrong(certificate, "it contains no private key");
    w.pair.certificate = key;
    expect_wrong(key, "it contains no certificate");
    folder_add(&w.folder, "broken", MK_STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
    w.pair = (struct mk_tls_keypair){.certificate = tls_fixture_path(&w, "broken"), .key = key};
    expect_wrong(w.pair.certificate, "is invalid");
}

static void context_mismatched_key_is_reported(void **state)
{
    (void)state;
    struct mk_tls_keypair other = tls_fixture_keypair(&w, "other", EVP_EC_gen("P-256"), -1, 10);
    w.pair.key = other.key;
    expect_wrong(other.key, "does not belong to the certificate in");
    other = tls_fixture_keypair(&w, "rsa", EVP_RSA_gen(2048), -1, 10);
    w.pair.key = other.key;
    expect_wrong(other.key, "does not belong to the certificate in");
}

static void context_encrypted_key_is_reported(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    const char *path = tls_fixture_path(&w, "locked.key");
    FILE *f = fopen(path, "w");
    assert_true(PEM_write_PKCS8PrivateKey(f, key, EVP_aes_128_cbc(), "open sesame", 11, NULL, NULL));
    fclose(f);
    EVP_PKEY_free(key);
    w.pair.key = path;
    expect_wrong(path, "protected by a password");
}

static void context_readable_key_is_reported(void **state)
{
    (void)state;
    assert_int_equal(chmod(w.pair.key, 0644), 0);
    expect_odd(w.pair.key, "others can read the key: expected mode 0600, not 0644");
}

static void context_validity_period_is_checked(void **state)
{
    (void)state;
    w.pair = tls_fixture_keypair(&w, "late", EVP_EC_gen("P-256"), -3, -1);
    expect_odd(w.pair.certificate, "expired on ");
    w.pair = tls_fixture_keypair(&w, "early", EVP_EC_gen("P-256"), 2, 3);
    expect_odd(w.pair.certificate, "not valid before");
}

/* The next configuration keeps the certificate when its files have become unusable. */
static void context_keeps_certificate_whose_files_are_gone(void **state)
{
    (void)state;
    struct mk_tls_context *first;
    tls_fixture_load(&w);
    first = w.context;
    assert_true(mk_tls_context_has_certificate(first, w.pair.certificate));
    assert_false(mk_tls_context_has_certificate(first, "other.pem"));
    assert_int_equal(unlink(w.pair.certificate) | unlink(w.pair.key), 0);
    expect_wrong(w.pair.certificate, "cannot read the certificate");
    w.pair.kept_by = first;
    tls_fixture_load(&w);
    mk_tls_context_free(first);
    assert_int_equal(mk_tls_context_valid_until(w.context) > time(NULL), 1);
    tls_fixture_connect(&w);
    tls_fixture_close(&w);
    struct mk_tls_context *second = w.context;
    w.pair.kept_by = second; /* kept for a second reload */
    tls_fixture_load(&w);
    mk_tls_context_free(second);
    tls_fixture_connect(&w);
    w.pair.kept_by = NULL;
}

static void context_cannot_keep_unknown_certificate(void **state)
{
    (void)state;
    tls_fixture_load(&w);
    struct mk_tls_context *c = NULL;
    struct mk_tls_keypair pair = {.certificate = "/nowhere.pem", .kept_by = w.context};
    struct mk_tls_server_settings rules = w.rules;
    rules.pairs = &pair;
    assert_true(mk_tls_context_new(&rules, &c, &w.problem) < 0);
    assert_null(c);
}

static void context_weak_key_is_rejected(void **state)
{
    (void)state;
    w.pair = tls_fixture_keypair(&w, "weak", EVP_RSA_gen(1024), -1, 10);
    expect_wrong(w.pair.certificate, "its RSA key has 1024 bits: expected at least 2048");
}

static void context_invalid_ciphers_are_reported(void **state)
{
    (void)state;
    w.rules.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:NONSENSE";
    expect_wrong(NULL, "\"NONSENSE\" is not a cipher of TLS 1.2");
    w.rules.ciphers = "!ALL:ECDHE-ECDSA-AES128-GCM-SHA256";
    expect_wrong(NULL, "selects no cipher of TLS 1.2");
    w.rules.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384:!SHA1:@STRENGTH";
    w.rules.suites = "TLS_NONSENSE";
    expect_wrong(NULL, "\"TLS_NONSENSE\" is not a cipher of TLS 1.3");
    w.rules.suites = "TLS_AES_256_GCM_SHA384";
    w.rules.groups = "X25519:nonsense";
    expect_wrong(NULL, "\"X25519:nonsense\" is not a list of groups");
    w.rules.groups = "P-384";
    tls_fixture_load(&w);
    tls_fixture_connect(&w);
    assert_string_equal(SSL_get_cipher_name(w.client), "TLS_AES_256_GCM_SHA384");
}

static void context_minimum_version_is_enforced(void **state)
{
    (void)state;
    const char *why;
    w.rules.oldest = 13;
    tls_fixture_load(&w);
    SSL_CTX_set_max_proto_version(w.clients, TLS1_2_VERSION);
    assert_int_equal(tls_fixture_accept(&w, mk_str_of(NULL, 0)), 0);
    tls_fixture_set_client(&w);
    assert_int_equal(tls_fixture_handshake(&w, &why), -EPROTO);
    assert_string_equal(why, "unsupported protocol");
}

/* ---- Client certificates ---- */

static void context_client_authority_is_validated(void **state)
{
    (void)state;
    w.rules.clients = MK_TLS_CLIENTS_OPTIONAL;
    expect_wrong(NULL, "no client authority is configured");
    w.rules.client_authority = "/nowhere/at/all.pem";
    expect_wrong(w.rules.client_authority, "cannot read the client authority: No such file");
    w.rules.client_authority = w.pair.key;
    expect_wrong(w.pair.key, "it contains no certificate");
    w.rules.client_authority = w.pair.certificate;
    tls_fixture_load(&w);
}

static mk_err try(const struct mk_tls_keypair *pair)
{
    char buffer[16];
    const char *why;
    assert_int_equal(tls_fixture_accept(&w, mk_str_of(NULL, 0)), 0);
    tls_fixture_set_client(&w);
    if (pair) {
        assert_int_equal(SSL_use_certificate_file(w.client, pair->certificate, SSL_FILETYPE_PEM), 1);
        assert_int_equal(SSL_use_PrivateKey_file(w.client, pair->key, SSL_FILETYPE_PEM), 1);
    }
    mk_err e = tls_fixture_handshake(&w, &why);
    return e ? e : tls_fixture_read(&w, buffer, sizeof buffer) == -EAGAIN ? 0 : -EIO;
}

static void assert_certificate(mk_str der, mk_str subject)
{
    const unsigned char *at = (const unsigned char *)der.p, *end = at + der.len;
    X509 *x = d2i_X509(NULL, &at, (long)der.len);
    char name[MK_TLS_CONN_INFO_NAME_MAX];
    assert_non_null(x);
    assert_ptr_equal(at, end);
    assert_true(mk_str_eq(mk_tls_conn_info_format_name(X509_get_subject_name(x), name), subject));
    X509_free(x);
}

static void context_client_certificates_are_verified(void **state)
{
    (void)state;
    struct mk_tls_keypair known = tls_fixture_keypair(&w, "known", EVP_EC_gen("P-256"), -1, 10);
    struct mk_tls_keypair stranger = tls_fixture_keypair(&w, "stranger", EVP_EC_gen("P-256"), -1, 10);
    struct mk_tls_conn_info facts;
    w.rules.client_authority = known.certificate;
    for (int mode = MK_TLS_CLIENTS_OPTIONAL; mode <= MK_TLS_CLIENTS_REQUIRED; mode++) {
        w.rules.clients = (enum mk_tls_clients)mode;
        tls_fixture_load(&w);
        assert_int_equal(try(&known), 0);
        mk_tls_conn_info_get(&w.s, &facts);
        assert_str(facts.client_subject, "CN=known");
        assert_str(facts.client_issuer, "CN=known");
        assert_str(facts.client_serial, "4711");
        assert_int_equal(facts.client_fingerprint.len, 64);
        assert_certificate(facts.client_certificate, facts.client_subject);
        assert_true(facts.client_expires > time(NULL));
        tls_fixture_close(&w);
        assert_int_equal(try(&stranger), -EPROTO);
        tls_fixture_close(&w);
        assert_int_equal(try(NULL), mode == MK_TLS_CLIENTS_OPTIONAL ? 0 : -EPROTO);
        if (mode == MK_TLS_CLIENTS_OPTIONAL) {
            mk_tls_conn_info_get(&w.s, &facts);
            assert_null(facts.client_subject.p);
        }
        tls_fixture_close(&w);
        mk_tls_context_free(w.context);
        w.context = NULL;
    }
}

/* ---- OCSP ---- */

static const char *write_answer(const char *name, long serial, int days)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = tls_fixture_sign(key, "authority", -1, 100);
    ASN1_INTEGER *number = ASN1_INTEGER_new();
    ASN1_INTEGER_set(number, serial);
    OCSP_CERTID *id =
        OCSP_cert_id_new(EVP_sha1(), X509_get_subject_name(x), X509_get0_pubkey_bitstr(x), number);
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    ASN1_TIME *from = X509_time_adj_ex(NULL, -10, 0, NULL), *to = X509_time_adj_ex(NULL, days, 0, NULL);
    assert_non_null(OCSP_basic_add1_status(basic, id, V_OCSP_CERTSTATUS_GOOD, 0, NULL, from, to));
    assert_true(OCSP_basic_sign(basic, x, key, EVP_sha256(), NULL, 0));
    OCSP_RESPONSE *r = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    const char *path = tls_fixture_path(&w, name);
    BIO *b = BIO_new_file(path, "w");
    assert_true(i2d_OCSP_RESPONSE_bio(b, r) > 0);
    BIO_free(b);
    OCSP_RESPONSE_free(r);
    OCSP_BASICRESP_free(basic);
    ASN1_TIME_free(from);
    ASN1_TIME_free(to);
    OCSP_CERTID_free(id);
    ASN1_INTEGER_free(number);
    X509_free(x);
    EVP_PKEY_free(key);
    return path;
}

static long stapled(void)
{
    const unsigned char *p;
    tls_fixture_load(&w);
    SSL_CTX_set_tlsext_status_type(w.clients, TLSEXT_STATUSTYPE_ocsp);
    tls_fixture_connect(&w);
    long len = SSL_get_tlsext_status_ocsp_resp(w.client, &p);
    tls_fixture_close(&w);
    mk_tls_context_free(w.context);
    w.context = NULL;
    return len;
}

static void context_ocsp_response_is_validated(void **state)
{
    (void)state;
    struct stat st;
    w.pair.ocsp = w.pair.key;
    expect_wrong(w.pair.key, "it contains no OCSP response: expected DER");
    w.pair.ocsp = write_answer("other.ocsp", 0x1234, 5);
    expect_wrong(w.pair.ocsp, "for another certificate");
    w.pair.ocsp = write_answer("late.ocsp", 0x4711, -5);
    expect_odd(w.pair.ocsp, "out of date");
    assert_int_equal(stapled(), -1);
    w.pair.ocsp = write_answer("good.ocsp", 0x4711, 5);
    assert_int_equal(stat(w.pair.ocsp, &st), 0);
    assert_int_equal(stapled(), st.st_size);
    SSL_CTX_set_max_proto_version(w.clients, TLS1_2_VERSION);
    assert_int_equal(stapled(), st.st_size);
    w.pair.ocsp = NULL;
    assert_int_equal(stapled(), -1);
}

/* ---- ALPN ---- */

static const char *speaks(const char *offer)
{
    static char chosen[32];
    const unsigned char *p;
    unsigned n;
    const char *why;
    SSL_CTX_set_alpn_protos(w.clients, (const unsigned char *)offer, (unsigned)strlen(offer));
    assert_int_equal(tls_fixture_accept(&w, mk_str_of(NULL, 0)), 0);
    tls_fixture_set_client(&w);
    mk_err e = tls_fixture_handshake(&w, &why);
    SSL_get0_alpn_selected(w.client, &p, &n);
    snprintf(chosen, sizeof chosen, "%.*s", (int)n, (const char *)p);
    tls_fixture_close(&w);
    return e ? why : chosen;
}

static void context_alpn_selects_protocol(void **state)
{
    (void)state;
    tls_fixture_load(&w);
    assert_string_equal(speaks("\x08http/1.1\x02h2"), "h2");
    assert_string_equal(speaks("\x08http/1.1"), "http/1.1");
    assert_string_equal(speaks("\x08http/1.0"), "http/1.0");
    assert_string_equal(speaks("\x03"
                               "foo"),
                        "no application protocol");
    assert_string_equal(speaks("\x0a"
                               "acme-tls/1"),
                        "there is no challenge for the requested name");
    mk_tls_context_free(w.context);
    w.rules.h2 = false;
    tls_fixture_load(&w);
    assert_string_equal(speaks("\x02h2\x08http/1.1"), "http/1.1");
}

static void context_answers_acme_challenge(void **state)
{
    (void)state;
    struct mk_tls_conn_info facts;
    const char *why;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = tls_fixture_sign(key, "challenge", -1, 1);
    tls_fixture_write_pem(&w, "own.example.pem", key, x);
    X509_free(x);
    EVP_PKEY_free(key);
    w.rules.challenges = w.folder.path;
    tls_fixture_load(&w);
    SSL_CTX_set_alpn_protos(w.clients,
                            (const unsigned char *)"\x0a"
                                                   "acme-tls/1",
                            11);
    tls_fixture_connect(&w);
    mk_tls_conn_info_get(&w.s, &facts);
    assert_str(facts.protocol, "acme-tls/1");
    char name[64];
    X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(w.client)), NID_commonName,
                              name, sizeof name);
    assert_string_equal(name, "challenge");
    tls_fixture_close(&w);
    static const char *const others[] = {"other.example", "../own", "own.example/", ".own.example",
                                         "own..example"};
    for (size_t i = 0; i < MK_LEN(others); i++) {
        assert_int_equal(tls_fixture_accept(&w, mk_str_of(NULL, 0)), 0);
        tls_fixture_set_client(&w);
        SSL_set_tlsext_host_name(w.client, others[i]);
        assert_int_equal(tls_fixture_handshake(&w, &why), -EPROTO);
        tls_fixture_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(context_loads_certificate, setup),
        fixture_test(context_loads_two_key_types, setup),
        fixture_test(context_rejects_duplicate_key_type, setup),
        fixture_test(context_without_certificate_needs_challenges, setup),
        fixture_test(context_unreadable_files_are_reported, setup),
        fixture_test(context_malformed_files_are_reported, setup),
        fixture_test(context_mismatched_key_is_reported, setup),
        fixture_test(context_encrypted_key_is_reported, setup),
        fixture_test(context_readable_key_is_reported, setup),
        fixture_test(context_validity_period_is_checked, setup),
        fixture_test(context_keeps_certificate_whose_files_are_gone, setup),
        fixture_test(context_cannot_keep_unknown_certificate, setup),
        fixture_test(context_weak_key_is_rejected, setup),
        fixture_test(context_invalid_ciphers_are_reported, setup),
        fixture_test(context_minimum_version_is_enforced, setup),
        fixture_test(context_client_authority_is_validated, setup),
        fixture_test(context_client_certificates_are_verified, setup),
        fixture_test(context_ocsp_response_is_validated, setup),
        fixture_test(context_alpn_selects_protocol, setup),
        fixture_test(context_answers_acme_challenge, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
