/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/trust_store.h"

#include <dirent.h>
#include <monkey/text.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "tls/file.h"

enum { PATH_ROOM = 4096, HASH_DIGITS = 8 };

/* ---- CAs from a file ---- */

mk_err mk_tls_trust_store_read_file(const char *file, const char *what, mk_err (*add)(void *ctx, X509 *x),
                                    void *ctx, struct mk_tls_settings_error *problem)
{
    BIO *b;
    X509 *x;
    unsigned n = 0;
    mk_err e = mk_tls_file_read_to_bio(file, false, what, &b, problem);
    if (e)
        return e;
    for (; !e && (x = PEM_read_bio_X509(b, NULL, mk_tls_file_refuse_password_cb, NULL)); n++) {
        e = add(ctx, x);
        X509_free(x);
    }
    BIO_free(b);
    unsigned long last = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
    if (!e && !is_end)
        return mk_tls_settings_error_set_openssl(problem, file, "it contains an invalid certificate");
    if (!e && !n)
        return mk_tls_settings_error_set(
            problem, file, "it contains no certificate: expected PEM, \"-----BEGIN CERTIFICATE-----\"");
    ERR_clear_error();
    return e;
}

static mk_err store_add_cert(void *ctx, X509 *x)
{
    return X509_STORE_add_cert(ctx, x) ? 0 : -ENOMEM;
}

static X509_STORE *read_ca_file(const char *file, struct mk_tls_settings_error *problem)
{
    X509_STORE *store = X509_STORE_new();
    if (store && !mk_tls_trust_store_read_file(file, "authority", store_add_cert, store, problem)) {
        X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN); /* trust a server's own certificate as well */
        return store;
    }
    X509_STORE_free(store);
    return NULL;
}

/* ---- System CAs: OpenSSL's file and folders ---- */

static const char *system_ca_file(void)
{
    const char *set = secure_getenv(X509_get_default_cert_file_env());
    return set ? set : X509_get_default_cert_file();
}

static const char *system_ca_folders(void)
{
    const char *set = secure_getenv(X509_get_default_cert_dir_env());
    return set ? set : X509_get_default_cert_dir();
}

/* Is it the name of a link created by c_rehash, HHHHHHHH.N? OpenSSL uses only these links. */
static bool is_hashed_name(const char *name)
{
    if (strspn(name, "0123456789abcdef") != HASH_DIGITS || name[HASH_DIGITS] != '.')
        return false;
    name += HASH_DIGITS + 1;
    return *name && name[strspn(name, "0123456789")] == '\0';
}

typedef void ca_file_fn(void *ctx, const char *file);

static void each_file_in_folder(mk_str folder, ca_file_fn *on_file, void *ctx)
{
    char path[PATH_ROOM];
    struct dirent *entry;
    int len = snprintf(path, sizeof path, "%.*s/", MK_STR_ARG(folder));
    DIR *d = len > 1 && (size_t)len < sizeof path ? opendir(path) : NULL;
    if (!d)
        return;
    while ((entry = readdir(d))) {
        int more = snprintf(path + len, sizeof path - (size_t)len, "%s", entry->d_name);
        if (is_hashed_name(entry->d_name) && (size_t)(len + more) < sizeof path)
            on_file(ctx, path);
    }
    (void)closedir(d);
}

static void each_system_ca_file(ca_file_fn *on_file, void *ctx)
{
    on_file(ctx, system_ca_file());
    for (const char *at = system_ca_folders(); *at;) {
        size_t n = strcspn(at, ":");
        each_file_in_folder(mk_str_of(at, n), on_file, ctx);
        at += n + (at[n] == ':');
    }
}

/* Errors in individual system files are ignored. */
static void load_ca_file(void *ctx, const char *file)
{
    (void)X509_load_cert_file(ctx, file, X509_FILETYPE_PEM);
    ERR_clear_error();
}

static X509_STORE *read_system_store(void)
{
    X509_STORE *store = X509_STORE_new();
    X509_LOOKUP *lookup = store ? X509_STORE_add_lookup(store, X509_LOOKUP_file()) : NULL;
    if (lookup)
        each_system_ca_file(load_ca_file, lookup);
    if (lookup && sk_X509_OBJECT_num(X509_STORE_get0_objects(store)) > 0)
        return store;
    X509_STORE_free(store);
    return NULL;
}

/* ---- The shared store ---- */

struct file_stamp {
    uint64_t n, sum;
};

static struct {
    pthread_mutex_t lock;
    X509_STORE *store;
    unsigned users;
    struct file_stamp file_stamp; /* stamp of the files read */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_file_to_stamp(void *ctx, const char *file)
{
    struct file_stamp *all = ctx;
    struct stat st;
    if (stat(file, &st) < 0)
        return;
    const uint64_t facts[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                              (uint64_t)st.st_ctim.tv_sec, (uint64_t)st.st_ctim.tv_nsec};
    all->n++;
    all->sum += mk_fnv1a(MK_FNV1A_INIT, mk_str_of((const char *)facts, sizeof facts)); /* in any order */
}

static void refresh_shared_store(void)
{
    struct file_stamp now = {0};
    each_system_ca_file(add_file_to_stamp, &now);
    if (shared.store && now.n == shared.file_stamp.n && now.sum == shared.file_stamp.sum)
        return;
    X509_STORE_free(shared.store); /* users of the store hold references */
    shared.store = read_system_store();
    shared.file_stamp = now;
    shared.users = 0;
}

static X509_STORE *acquire_shared_store(void)
{
    pthread_mutex_lock(&shared.lock);
    refresh_shared_store();
    X509_STORE *store = shared.store;
    if (store) {
        (void)X509_STORE_up_ref(store);
        shared.users++;
    }
    pthread_mutex_unlock(&shared.lock);
    return store;
}

X509_STORE *mk_tls_trust_store_acquire(const char *file, struct mk_tls_settings_error *problem)
{
    X509_STORE *store = file ? read_ca_file(file, problem) : acquire_shared_store();
    if (!store && !file)
        (void)mk_tls_settings_error_set(
            problem, NULL,
            "the system has no trusted authorities, since %s and %s are empty: install its "
            "CA certificates, or specify a file",
            system_ca_file(), system_ca_folders());
    return store;
}

void mk_tls_trust_store_release(X509_STORE *store)
{
    pthread_mutex_lock(&shared.lock);
    if (store && store == shared.store && --shared.users == 0) {
        X509_STORE_free(shared.store);
        shared.store = NULL;
    }
    pthread_mutex_unlock(&shared.lock);
    X509_STORE_free(store);
}
