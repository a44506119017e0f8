/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of the local certificate authority: their contents, the clients that trust them, and their
 * renewal. */
#include "tls/local_ca.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "unit/test.h"

enum { ROOM = 32 * 1024, DAY = 24 * 60 * 60 };

#define NOW INT64_C(1800000000) /* January 2027 */

static const char *const box_names[] = {"localhost", "box",     "box.local",   "127.0.0.1",   "::1",
                                        "10.1.2.3",  "fd00::7", "2001:db8::9", "192.0.2.200", "100.64.0.1"};
static const struct mk_tls_names box = {box_names, MK_LEN(box_names)};
static const struct mk_tls_local_ca_ops *const ops = &mk_tls_local_ca_ops_openssl;

struct fixture {
    char pem_buf[ROOM], leaf_buf[ROOM];
    struct mk_buf pem, leaf;
    struct mk_tls_local_ca *a;
};

static struct fixture f;

static struct mk_tls_local_ca *open_again(mk_str pem)
{
    struct mk_tls_local_ca *a;
    const char *why;
    assert_int_equal(ops->open(pem, &a, &why), 0);
    assert_null(why);
    return a;
}

static void setup(void)
{
    f.pem = mk_buf_fixed(f.pem_buf, ROOM);
    f.leaf = mk_buf_fixed(f.leaf_buf, ROOM);
    assert_int_equal(ops->make(MK_STR("box"), &box, NOW, &f.pem), 0);
    f.a = open_again(mk_buf_str(&f.pem));
    assert_int_equal(ops->issue(f.a, &box, NOW, &f.leaf), 0);
}

static void teardown(void)
{
    ops->close(f.a);
}

static X509 *certificate_in(const struct mk_buf *pem)
{
    BIO *bio = BIO_new_mem_buf(pem->p, (int)pem->len);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    assert_non_null(x);
    BIO_free(bio);
    return x;
}

static int64_t seconds_of(const ASN1_TIME *t)
{
    struct tm tm;
    assert_int_equal(ASN1_TIME_to_tm(t, &tm), 1);
    return (int64_t)timegm(&tm);
}

/* Replaces OpenSSL's check of the time: where long has 32 bits, OpenSSL's time_t may differ from ours. */
static int judge_time(const X509 *x, int64_t at)
{
    if (seconds_of(X509_get0_notBefore(x)) > at)
        return X509_V_ERR_CERT_NOT_YET_VALID;
    return seconds_of(X509_get0_notAfter(x)) <= at ? X509_V_ERR_CERT_HAS_EXPIRED : X509_V_OK;
}

/* Verifies the leaf for this name and time as a strict client does. Returns X509_V_OK or the error. */
static int verify(const struct mk_buf *leaf, const char *name, bool address, int64_t at)
{
    X509 *root = certificate_in(&f.pem), *x = certificate_in(leaf);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    assert_int_equal(X509_STORE_add_cert(store, root), 1);
    assert_int_equal(X509_STORE_CTX_init(ctx, store, x, NULL), 1);
    X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_flags(p, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE |
                                       X509_V_FLAG_NO_CHECK_TIME);
    X509_VERIFY_PARAM_set_purpose(p, X509_PURPOSE_SSL_SERVER);
    assert_int_equal(
        address ? X509_VERIFY_PARAM_set1_ip_asc(p, name) : X509_VERIFY_PARAM_set1_host(p, name, 0), 1);
    (void)X509_verify_cert(ctx);
    int why = X509_STORE_CTX_get_error(ctx);
    why = why == X509_V_OK ? judge_time(root, at) : why;
    why = why == X509_V_OK ? judge_time(x, at) : why;
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(x);
    X509_free(root);
    return why;
}

static bool is_address(const char *name)
{
    return strchr(name, ':') || mk_char_is_digit(name[0]);
}

/* ---- Verification by clients ---- */

static void local_ca_own_names_verify(void **state)
{
    (void)state;
    for (size_t i = 0; i < box.n; i++)
        assert_int_equal(verify(&f.leaf, box.at[i], is_address(box.at[i]), NOW), X509_V_OK);
}

static void local_ca_other_names_do_not_verify(void **state)
{
    (void)state;
    assert_int_equal(verify(&f.leaf, "example.org", false, NOW), X509_V_ERR_HOSTNAME_MISMATCH);
    assert_int_equal(verify(&f.leaf, "a.localhost", false, NOW), X509_V_ERR_HOSTNAME_MISMATCH);
    assert_int_equal(verify(&f.leaf, "10.1.2.4", true, NOW), X509_V_ERR_IP_ADDRESS_MISMATCH);
}

static void local_ca_leaf_is_valid_for_90_days(void **state)
{
    (void)state;
    /* valid for clocks that are behind */
    assert_int_equal(verify(&f.leaf, "box", false, NOW - 1800), X509_V_OK);
    assert_int_equal(verify(&f.leaf, "box", false, NOW + 89 * DAY), X509_V_OK);
    assert_int_equal(verify(&f.leaf, "box", false, NOW + 90 * DAY), X509_V_ERR_CERT_HAS_EXPIRED);
}

static void local_ca_leaf_of_other_authority_does_not_verify(void **state)
{
    (void)state;
    char buffer[ROOM], leaf_buf[ROOM];
    struct mk_buf pem = mk_buf_fixed(buffer, ROOM), leaf = mk_buf_fixed(leaf_buf, ROOM);
    assert_int_equal(ops->make(MK_STR("box"), &box, NOW, &pem), 0);
    struct mk_tls_local_ca *other = open_again(mk_buf_str(&pem));
    assert_int_equal(ops->issue(other, &box, NOW, &leaf), 0);
    assert_int_not_equal(verify(&leaf, "box", false, NOW), X509_V_OK);
    assert_string_equal(ops->is_due(f.a, mk_buf_str(&leaf), &box, NOW), "it is from another CA");
    ops->close(other);
}

/* ---- Certificate contents ---- */

static void local_ca_root_has_minimal_extensions(void **state)
{
    (void)state;
    X509 *x = certificate_in(&f.pem);
    assert_int_equal(X509_check_ca(x), 1);
    assert_int_equal(X509_get_pathlen(x), 0);
    assert_int_equal(X509_get_key_usage(x), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    assert_int_equal(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
    assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(x)), 256);
    const int critical[] = {NID_basic_constraints, NID_key_usage, NID_name_constraints};
    for (size_t i = 0; i < MK_LEN(critical); i++)
        assert_int_equal(
            X509_EXTENSION_get_critical(X509_get_ext(x, X509_get_ext_by_NID(x, critical[i], -1))), 1);
    X509_free(x);
}

static void local_ca_leaf_is_for_server_authentication_only(void **state)
{
    (void)state;
    X509 *x = certificate_in(&f.leaf);
    assert_int_equal(X509_check_ca(x), 0);
    assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(x)), 0);
    assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
    int at = X509_get_ext_by_NID(x, NID_subject_alt_name, -1);
    assert_int_equal(X509_EXTENSION_get_critical(X509_get_ext(x, at)), 1);
    X509_free(x);
}

static void local_ca_serials_and_keys_are_unique(void **state)
{
    (void)state;
    char buffer[ROOM];
    struct mk_buf again = mk_buf_fixed(buffer, ROOM);
    assert_int_equal(ops->issue(f.a, &box, NOW, &again), 0);
    X509 *one = certificate_in(&f.leaf), *two = certificate_in(&again), *root = certificate_in(&f.pem);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(one), X509_get0_serialNumber(two)), 0);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(one), X509_get0_serialNumber(root)), 0);
    assert_int_equal(ASN1_STRING_length(X509_get0_serialNumber(one)), 20);
    assert_int_not_equal(EVP_PKEY_eq(X509_get0_pubkey(one), X509_get0_pubkey(two)), 1);
    X509_free(one);
    X509_free(two);
    X509_free(root);
}

static void local_ca_info_describes_authority(void **state)
{
    (void)state;
    struct mk_tls_local_ca_info facts;
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned n;
    char text[128];
    ops->facts(f.a, &facts);
    assert_string_equal(facts.name, "Monkey on box");
    assert_int_equal(facts.since, NOW - 3600);
    assert_true(facts.until > NOW + INT64_C(3650) * DAY && facts.until < NOW + INT64_C(3654) * DAY);
    X509 *x = certificate_in(&f.pem);
    assert_int_equal(X509_digest(x, EVP_sha256(), hash, &n), 1);
    for (unsigned i = 0; i < n; i++)
        snprintf(text + (size_t)3 * i, 4, "%02X:", hash[i]);
    text[3 * n - 1] = '\0';
    assert_string_equal(facts.fingerprint, text);
    X509_free(x);
}

static void local_ca_odd_machine_name_is_sanitized(void **state)
{
    (void)state;
    char who[300], buffer[ROOM];
    memset(who, 'x', sizeof who);
    memcpy(who, "a\nb,O=\xff\x80/", 9);
    struct mk_buf pem = mk_buf_fixed(buffer, ROOM);
    struct mk_tls_local_ca_info facts;
    assert_int_equal(ops->make(mk_str_of(who, sizeof who), &box, NOW, &pem), 0);
    struct mk_tls_local_ca *a = open_again(mk_buf_str(&pem));
    ops->facts(a, &facts);
    assert_int_equal(strlen(facts.name), 64);
    assert_contains(mk_str_from_c(facts.name), "Monkey on a?b,O=\?\?/xx");
    ops->close(a);
}

static void local_ca_exported_certificate_has_no_key(void **state)
{
    (void)state;
    char buffer[ROOM];
    struct mk_buf pem = mk_buf_fixed(buffer, ROOM);
    assert_int_equal(ops->certificate(f.a, &pem), 0);
    assert_contains(mk_buf_str(&f.pem), "PRIVATE KEY");
    assert_null(memmem(pem.p, pem.len, "PRIVATE", 7));
    assert_true(mk_str_ends(mk_buf_str(&f.pem), mk_buf_str(&pem)));
}

/* ---- Name constraints ---- */

static void local_ca_name_constraints_limit_to_machine(void **state)
{
    (void)state;
    const char *const fine[] = {"localhost",   "a.localhost", "box",          "box.local",
                                "other.local", "127.1.2.3",   "10.255.0.1",   "172.16.0.1",
                                "192.168.3.4", "::1",         "2001:db8::1",  "192.0.2.200",
                                "169.254.9.9", "100.127.0.1", "172.31.255.1", "fe80::1"};
    const char *const never[] = {"example.org", "boxx",        "www.box",    "a.b.box",     "local.org",
                                 "8.8.8.8",     "192.0.2.201", "172.32.0.1", "100.128.0.1", "",
                                 ".",           "a b",         "x,DNS:y",    "x;y",         "x\ny",
                                 "*.box:443",   "-\xc3\xbc",   "email:a@b"};
    for (size_t i = 0; i < MK_LEN(fine); i++)
        if (!ops->may(f.a, fine[i]))
            fail_msg("it may not vouch for %s", fine[i]);
    for (size_t i = 0; i < MK_LEN(never); i++)
        if (ops->may(f.a, never[i]))
            fail_msg("it may vouch for %s", never[i]);
}

static void local_ca_refuses_foreign_names(void **state)
{
    (void)state;
    char buffer[ROOM];
    struct mk_buf pem = mk_buf_fixed(buffer, ROOM);
    const char *const names[] = {"box", "example.org"};
    assert_int_not_equal(ops->issue(f.a, &(struct mk_tls_names){names, 2}, NOW, &pem), 0);
    assert_int_not_equal(ops->issue(f.a, &(struct mk_tls_names){names, 0}, NOW, &pem), 0);
    assert_int_equal(pem.len, 0);
}

static void local_ca_many_addresses_fit(void **state)
{
    (void)state;
    static char texts[256][16];
    const char *names[256];
    char buffer[ROOM];
    struct mk_buf pem = mk_buf_fixed(buffer, ROOM);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(texts[i], sizeof texts[i], "10.0.0.%u", i);
        names[i] = texts[i];
    }
    const struct mk_tls_names all = {names, 256};
    assert_int_equal(ops->issue(f.a, &all, NOW, &pem), 0);
    assert_int_equal(verify(&pem, "10.0.0.255", true, NOW), X509_V_OK);
    assert_null(ops->is_due(f.a, mk_buf_str(&pem), &all, NOW));
}

/* ---- Renewal ---- */

static void local_ca_fresh_leaf_is_not_due(void **state)
{
    (void)state;
    assert_null(ops->is_due(f.a, mk_buf_str(&f.leaf), &box, NOW));
    assert_null(ops->is_due(f.a, mk_buf_str(&f.leaf), &box, NOW + 59 * DAY));
    const struct mk_tls_names fewer = {box_names, 3};
    assert_null(
        ops->is_due(f.a, mk_buf_str(&f.leaf), &fewer, NOW)); /* an interface that is down may come back */
}

static void local_ca_leaf_is_due_at_two_thirds_of_lifetime(void **state)
{
    (void)state;
    assert_string_equal(ops->is_due(f.a, mk_buf_str(&f.leaf), &box, NOW + 60 * DAY),
                        "two thirds of its lifetime have passed");
    assert_string_equal(ops->is_due(f.a, mk_buf_str(&f.leaf), &box, NOW - DAY), "it is not valid yet");
}

static void local_ca_leaf_is_due_after_new_name(void **state)
{
    (void)state;
    const char *const names[] = {"box", "10.9.9.9"}, *const hosts[] = {"new.local"};
    assert_string_equal(ops->is_due(f.a, mk_buf_str(&f.leaf), &(struct mk_tls_names){names, 2}, NOW),
                        "this machine has a new name or address");
    assert_string_equal(ops->is_due(f.a, mk_buf_str(&f.leaf), &(struct mk_tls_names){hosts, 1}, NOW),
                        "this machine has a new name or address");
}

static void local_ca_unreadable_leaf_is_due(void **state)
{
    (void)state;
    mk_str leaf = mk_buf_str(&f.leaf);
    assert_string_equal(ops->is_due(f.a, MK_STR(""), &box, NOW), "it is unreadable");
    assert_string_equal(ops->is_due(f.a, MK_STR("nonsense"), &box, NOW), "it is unreadable");
    assert_string_equal(ops->is_due(f.a, mk_str_first(leaf, leaf.len - 40), &box, NOW), "it is unreadable");
    assert_string_equal(ops->is_due(f.a, mk_str_skip(leaf, 40), &box, NOW), "it is unreadable");
}

static void local_ca_leaf_does_not_outlive_authority(void **state)
{
    (void)state;
    struct mk_tls_local_ca_info facts;
    char buffer[ROOM];
    struct mk_buf pem = mk_buf_fixed(buffer, ROOM);
    ops->facts(f.a, &facts);
    assert_int_equal(ops->issue(f.a, &box, facts.until - DAY, &pem), 0);
    assert_int_equal(verify(&pem, "box", false, facts.until - 1), X509_V_OK);
    assert_int_equal(verify(&pem, "box", false, facts.until + 2), X509_V_ERR_CERT_HAS_EXPIRED);
    X509 *x = certificate_in(&pem);
    assert_int_equal(judge_time(x, facts.until), X509_V_ERR_CERT_HAS_EXPIRED);
    X509_free(x);
}

/* ---- Invalid authorities ---- */

static void assert_refused(mk_str pem, const char *expected)
{
    struct mk_tls_local_ca *a;
    const char *why;
    assert_int_equal(ops->open(pem, &a, &why), -EINVAL);
    assert_null(a);
    assert_string_equal(why, expected);
}

static void local_ca_invalid_authority_is_rejected(void **state)
{
    (void)state;
    mk_str pem = mk_buf_str(&f.pem);
    size_t end_of_key = (size_t)((char *)memmem(pem.p, pem.len, "-----BEGIN CERT", 15) - pem.p);
    assert_refused(MK_STR(""), "it contains no readable private key");
    assert_refused(mk_str_skip(pem, end_of_key), "it contains no readable private key");
    assert_refused(mk_str_first(pem, end_of_key), "it contains no readable certificate");
    assert_refused(mk_str_first(pem, pem.len - 40), "it contains no readable certificate");
    assert_refused(mk_buf_str(&f.leaf), "its certificate is not a CA certificate");
}

static void local_ca_mismatched_key_is_rejected(void **state)
{
    (void)state;
    char buffer[ROOM], mixed_buf[ROOM];
    struct mk_buf other = mk_buf_fixed(buffer, ROOM), mixed = mk_buf_fixed(mixed_buf, ROOM);
    assert_int_equal(ops->make(MK_STR("box"), &box, NOW, &other), 0);
    mk_str pem = mk_buf_str(&f.pem), o = mk_buf_str(&other);
    mk_buf_add(&mixed,
               mk_str_first(pem, (size_t)((char *)memmem(pem.p, pem.len, "-----BEGIN CERT", 15) - pem.p)));
    mk_buf_add(&mixed, mk_str_skip(o, (size_t)((char *)memmem(o.p, o.len, "-----BEGIN CERT", 15) - o.p)));
    assert_refused(mk_buf_str(&mixed), "its key does not match its certificate");
}

static void local_ca_small_buffer_is_reported(void **state)
{
    (void)state;
    char buffer[100];
    struct mk_buf small = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(ops->make(MK_STR("box"), &box, NOW, &small), -EFBIG);
    small = mk_buf_fixed(buffer, sizeof buffer);
    assert_int_equal(ops->issue(f.a, &box, NOW, &small), -EFBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(local_ca_own_names_verify, setup, teardown),
        fixture_test(local_ca_other_names_do_not_verify, setup, teardown),
        fixture_test(local_ca_leaf_is_valid_for_90_days, setup, teardown),
        fixture_test(local_ca_leaf_of_other_authority_does_not_verify, setup, teardown),
        fixture_test(local_ca_root_has_minimal_extensions, setup, teardown),
        fixture_test(local_ca_leaf_is_for_server_authentication_only, setup, teardown),
        fixture_test(local_ca_serials_and_keys_are_unique, setup, teardown),
        fixture_test(local_ca_info_describes_authority, setup, teardown),
        fixture_test(local_ca_odd_machine_name_is_sanitized, setup, teardown),
        fixture_test(local_ca_exported_certificate_has_no_key, setup, teardown),
        fixture_test(local_ca_name_constraints_limit_to_machine, setup, teardown),
        fixture_test(local_ca_refuses_foreign_names, setup, teardown),
        fixture_test(local_ca_many_addresses_fit, setup, teardown),
        fixture_test(local_ca_fresh_leaf_is_not_due, setup, teardown),
        fixture_test(local_ca_leaf_is_due_at_two_thirds_of_lifetime, setup, teardown),
        fixture_test(local_ca_leaf_is_due_after_new_name, setup, teardown),
        fixture_test(local_ca_unreadable_leaf_is_due, setup, teardown),
        fixture_test(local_ca_leaf_does_not_outlive_authority, setup, teardown),
        fixture_test(local_ca_invalid_authority_is_rejected, setup, teardown),
        fixture_test(local_ca_mismatched_key_is_rejected, setup, teardown),
        fixture_test(local_ca_small_buffer_is_reported, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
