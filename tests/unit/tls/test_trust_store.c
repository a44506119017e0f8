/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/trust_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include "unit/tls/client_fixture.h"

static struct tls_fixture w;
static struct issuer a, b;
static struct mk_tls_settings_error problem;

static const char *in_folder(const char *name)
{
    static char paths[4][160];
    static unsigned n;
    char *path = paths[n++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", w.folder.path, name);
    return path;
}

/* Sets the system's certificate file and folders. */
static void set_system(const char *file, const char *folders)
{
    assert_int_equal(setenv("SSL_CERT_FILE", in_folder(file), 1), 0);
    assert_int_equal(setenv("SSL_CERT_DIR", folders, 1), 0);
}

static void setup(void)
{
    memset(&problem, 0, sizeof problem);
    tls_fixture_setup(&w);
    a = tls_client_issuer(&w, "a", NULL, (struct subject){0});
    b = tls_client_issuer(&w, "b", NULL, (struct subject){0});
    set_system("nothing", in_folder("hashed"));
    assert_int_equal(mkdir(in_folder("hashed"), 0700), 0);
}

static void teardown(void)
{
    tls_client_issuer_free(&a);
    tls_client_issuer_free(&b);
}

static void add_to(const char *folder, const struct issuer *i, const char *ending)
{
    char leaf[64];
    snprintf(leaf, sizeof leaf, "%s/%08lx%s", folder, X509_subject_name_hash(i->x), ending);
    assert_int_equal(symlink(i->file, in_folder(leaf)), 0);
}

static bool holds(X509_STORE *store, const struct issuer *i)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(store);
    for (int n = 0; n < sk_X509_OBJECT_num(all); n++)
        if (X509_cmp(X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, n)), i->x) == 0)
            return true;
    return false;
}

static X509_STORE *load_store(const char *file)
{
    X509_STORE *store = mk_tls_trust_store_acquire(file, &problem);
    if (!store)
        fail_msg("%s", problem.text);
    assert_int_equal(ERR_peek_error(), 0);
    return store;
}

/* ---- Configured file ---- */

static void trust_store_file_replaces_system_authorities(void **state)
{
    (void)state;
    set_system("a.ca", "");
    X509_STORE *store = load_store(b.file);
    assert_true(holds(store, &b) && !holds(store, &a));
    mk_tls_trust_store_release(store);
}

static void expect_wrong(const char *file, const char *part)
{
    assert_null(mk_tls_trust_store_acquire(file, &problem));
    assert_ptr_equal(problem.file, file);
    assert_contains(mk_str_from_c(problem.text), part);
    assert_int_equal(ERR_peek_error(), 0);
}

static void trust_store_invalid_files_are_reported(void **state)
{
    (void)state;
    expect_wrong("/nowhere/authority.pem", "cannot read the authority: No such file");
    folder_add(&w.folder, "text", MK_STR("hello\n"));
    expect_wrong(in_folder("text"), "it contains no certificate: expected PEM");
    folder_add(&w.folder, "broken", MK_STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
    expect_wrong(in_folder("broken"), "it contains an invalid certificate");
}

/* ---- System authorities ---- */

static void trust_store_reads_all_system_authorities(void **state)
{
    (void)state;
    set_system("a.ca", in_folder("hashed"));
    add_to("hashed", &b, ".0");
    X509_STORE *store = load_store(NULL);
    assert_true(holds(store, &a) && holds(store, &b));
    mk_tls_trust_store_release(store);
}

static void trust_store_reads_several_folders(void **state)
{
    (void)state;
    char folders[512];
    assert_int_equal(mkdir(in_folder("more"), 0700), 0);
    snprintf(folders, sizeof folders, "%s:/nowhere::%s", in_folder("hashed"), in_folder("more"));
    set_system("nothing", folders);
    add_to("hashed", &a, ".0");
    add_to("more", &b, ".12");
    X509_STORE *store = load_store(NULL);
    assert_true(holds(store, &a) && holds(store, &b));
    mk_tls_trust_store_release(store);
}

static void trust_store_reads_only_hashed_names(void **state)
{
    (void)state;
    add_to("hashed", &a, ".0");
    add_to("hashed", &b, ".r0");
    add_to("hashed", &b, ".");
    add_to("hashed", &b, ".0.bak");
    add_to("hashed", &b, "");
    assert_int_equal(symlink(b.file, in_folder("hashed/b.pem")), 0);
    assert_int_equal(symlink(b.file, in_folder("hashed/1234567.0")), 0);
    X509_STORE *store = load_store(NULL);
    assert_true(holds(store, &a) && !holds(store, &b));
    mk_tls_trust_store_release(store);
}

static void trust_store_skips_malformed_files(void **state)
{
    (void)state;
    folder_add(&w.folder, "hashed/00000000.0", MK_STR("hello\n"));
    add_to("hashed", &a, ".0");
    assert_int_equal(symlink("/nowhere", in_folder("hashed/00000001.0")), 0);
    X509_STORE *store = load_store(NULL);
    assert_true(holds(store, &a));
    mk_tls_trust_store_release(store);
}

static void trust_store_empty_system_is_reported(void **state)
{
    (void)state;
    expect_wrong(NULL, "the system has no trusted authorities, ");
    expect_wrong(NULL, "/hashed are empty: install its CA certificates, or specify a file");
}

/* ---- Sharing ---- */

static void trust_store_is_shared(void **state)
{
    (void)state;
    add_to("hashed", &a, ".0");
    X509_STORE *one = load_store(NULL), *two = load_store(NULL);
    assert_ptr_equal(one, two);
    mk_tls_trust_store_release(one);
    X509_STORE *three = load_store(NULL);
    assert_ptr_equal(three, two);
    mk_tls_trust_store_release(two);
    (void)X509_STORE_up_ref(three);
    mk_tls_trust_store_release(three); /* releasing the last reference frees the store */
    X509_STORE *four = load_store(NULL);
    assert_ptr_not_equal(four, three);
    X509_STORE_free(three);
    mk_tls_trust_store_release(four);
}

/* A reload reads the authorities again if they have changed; existing connections keep theirs. */
static void trust_store_is_reloaded_after_change(void **state)
{
    (void)state;
    add_to("hashed", &a, ".0");
    X509_STORE *before = load_store(NULL);
    add_to("hashed", &b, ".0");
    X509_STORE *after = load_store(NULL), *again = load_store(NULL);
    assert_true(after != before && after == again);
    assert_true(!holds(before, &b) && holds(after, &b));
    mk_tls_trust_store_release(before);
    mk_tls_trust_store_release(after);
    assert_int_equal(unlink(a.file), 0);
    X509_STORE *fewer = load_store(NULL);
    assert_true(fewer != again && !holds(fewer, &a) && holds(fewer, &b));
    mk_tls_trust_store_release(again);
    mk_tls_trust_store_release(fewer);
}

static void trust_store_is_reloaded_after_rewrite_in_place(void **state)
{
    (void)state;
    add_to("hashed", &a, ".0");
    X509_STORE *before = load_store(NULL);
    FILE *f = fopen(a.file, "w"); /* the file keeps its inode */
    assert_true(PEM_write_X509(f, b.x) && PEM_write_X509(f, a.x));
    fclose(f);
    X509_STORE *after = load_store(NULL);
    assert_true(!holds(before, &b) && holds(after, &b));
    mk_tls_trust_store_release(before);
    mk_tls_trust_store_release(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(trust_store_file_replaces_system_authorities, setup, teardown),
        fixture_test(trust_store_invalid_files_are_reported, setup, teardown),
        fixture_test(trust_store_reads_all_system_authorities, setup, teardown),
        fixture_test(trust_store_reads_several_folders, setup, teardown),
        fixture_test(trust_store_reads_only_hashed_names, setup, teardown),
        fixture_test(trust_store_skips_malformed_files, setup, teardown),
        fixture_test(trust_store_empty_system_is_reported, setup, teardown),
        fixture_test(trust_store_is_shared, setup, teardown),
        fixture_test(trust_store_is_reloaded_after_change, setup, teardown),
        fixture_test(trust_store_is_reloaded_after_rewrite_in_place, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
