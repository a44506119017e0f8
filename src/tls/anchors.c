/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/anchors.h"

#include <dirent.h>
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

/* ---- Those of a file ---- */

mk_err mk_tls_anchors_read(const char *file, const char *what, mk_err (*add)(void *ctx, X509 *x), void *ctx,
                           struct mk_tls_problem *problem)
{
    BIO *b;
    X509 *x;
    unsigned n = 0;
    mk_err e = mk_tls_file_read(file, false, what, &b, problem);
    if (e)
        return e;
    for (; !e && (x = PEM_read_bio_X509(b, NULL, mk_tls_file_no_password, NULL)); n++) {
        e = add(ctx, x);
        X509_free(x);
    }
    BIO_free(b);
    unsigned long last = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
    if (!e && !is_end)
        return mk_tls_problem_set_by(problem, file, "it contains an invalid certificate");
    if (!e && !n)
        return mk_tls_problem_set(
            problem, file, "it contains no certificate: expected PEM, \"-----BEGIN CERTIFICATE-----\"");
    ERR_clear_error();
    return e;
}

static mk_err add_to_store(void *ctx, X509 *x)
{
    return X509_STORE_add_cert(ctx, x) ? 0 : -ENOMEM;
}

static X509_STORE *read_file(const char *file, struct mk_tls_problem *problem)
{
    X509_STORE *store = X509_STORE_new();
    if (store && !mk_tls_anchors_read(file, "authority", add_to_store, store, problem)) {
        X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN); /* also a server's own certificate */
        return store;
    }
    X509_STORE_free(store);
    return NULL;
}

/* ---- Those of the system: OpenSSL's file and folders ---- */

static const char *file_of_system(void)
{
    const char *set = secure_getenv(X509_get_default_cert_file_env());
    return set ? set : X509_get_default_cert_file();
}

static const char *folders_of_system(void)
{
    const char *set = secure_getenv(X509_get_default_cert_dir_env());
    return set ? set : X509_get_default_cert_dir();
}

/* Links that c_rehash makes, HHHHHHHH.N: OpenSSL finds no others. */
static bool is_hashed(const char *name)
{
    if (strspn(name, "0123456789abcdef") != HASH_DIGITS || name[HASH_DIGITS] != '.')
        return false;
    name += HASH_DIGITS + 1;
    return *name && name[strspn(name, "0123456789")] == '\0';
}

typedef void visit(void *ctx, const char *file);

static void walk_folder(mk_str folder, visit *on_file, void *ctx)
{
    char path[PATH_ROOM];
    struct dirent *entry;
    int len = snprintf(path, sizeof path, "%.*s/", MK_STR_ARG(folder));
    DIR *d = len > 1 && (size_t)len < sizeof path ? opendir(path) : NULL;
    if (!d)
        return;
    while ((entry = readdir(d))) {
        int more = snprintf(path + len, sizeof path - (size_t)len, "%s", entry->d_name);
        if (is_hashed(entry->d_name) && (size_t)(len + more) < sizeof path)
            on_file(ctx, path);
    }
    (void)closedir(d);
}

static void walk(visit *on_file, void *ctx)
{
    on_file(ctx, file_of_system());
    for (const char *at = folders_of_system(); *at;) {
        size_t n = strcspn(at, ":");
        walk_folder(mk_str_of(at, n), on_file, ctx);
        at += n + (at[n] == ':');
    }
}

/* What is wrong with single files is the system's affair. */
static void load(void *ctx, const char *file)
{
    (void)X509_load_cert_file(ctx, file, X509_FILETYPE_PEM);
    ERR_clear_error();
}

static X509_STORE *read_system(void)
{
    X509_STORE *store = X509_STORE_new();
    X509_LOOKUP *lookup = store ? X509_STORE_add_lookup(store, X509_LOOKUP_file()) : NULL;
    if (lookup)
        walk(load, lookup);
    if (lookup && sk_X509_OBJECT_num(X509_STORE_get0_objects(store)) > 0)
        return store;
    X509_STORE_free(store);
    return NULL;
}

/* ---- Shared by all that want them ---- */

struct stamp {
    uint64_t n, sum;
};

static struct {
    pthread_mutex_t lock;
    X509_STORE *store;
    unsigned users;
    struct stamp stamp; /* of what was read */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add(struct stamp *s, uint64_t number)
{
    s->sum = (s->sum ^ number) * UINT64_C(0x100000001b3); /* FNV */
}

static void stamp_file(void *ctx, const char *file)
{
    struct stamp *all = ctx, one = {.sum = UINT64_C(0xcbf29ce484222325)};
    struct stat st;
    if (stat(file, &st) < 0)
        return;
    add(&one, (uint64_t)st.st_dev);
    add(&one, (uint64_t)st.st_ino);
    add(&one, (uint64_t)st.st_size);
    add(&one, (uint64_t)st.st_ctim.tv_sec);
    add(&one, (uint64_t)st.st_ctim.tv_nsec);
    all->n++;
    all->sum += one.sum; /* in any order */
}

static void refresh(void)
{
    struct stamp now = {0};
    walk(stamp_file, &now);
    if (shared.store && now.n == shared.stamp.n && now.sum == shared.stamp.sum)
        return;
    X509_STORE_free(shared.store); /* its users keep it */
    shared.store = read_system();
    shared.stamp = now;
    shared.users = 0;
}

static X509_STORE *take_shared(void)
{
    pthread_mutex_lock(&shared.lock);
    refresh();
    X509_STORE *store = shared.store;
    if (store) {
        (void)X509_STORE_up_ref(store);
        shared.users++;
    }
    pthread_mutex_unlock(&shared.lock);
    return store;
}

X509_STORE *mk_tls_anchors_take(const char *file, struct mk_tls_problem *problem)
{
    X509_STORE *store = file ? read_file(file, problem) : take_shared();
    if (!store && !file)
        (void)mk_tls_problem_set(problem, NULL,
                                 "the system trusts no authorities, %s and %s are empty: install its "
                                 "certificates of authorities, or name a file",
                                 file_of_system(), folders_of_system());
    return store;
}

void mk_tls_anchors_drop(X509_STORE *store)
{
    pthread_mutex_lock(&shared.lock);
    if (store && store == shared.store && --shared.users == 0) {
        X509_STORE_free(shared.store);
        shared.store = NULL;
    }
    pthread_mutex_unlock(&shared.lock);
    X509_STORE_free(store);
}
