/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/on_demand.h"

#include <monkey/text.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/mem.h"
#include "tls/keypair.h"
#include "tls/loaded_keypair.h"

enum {
    CERTIFICATES_MAX = 1000, /* in the cache of a thread, at about 10 KB each */
    SETS = 1024,             /* a power of two */
    RECHECK_S = 30,          /* a certificate that was renewed is presented after this time */
    PATH_SIZE = 4096,
};

struct mk_tls_demand {
    struct mk_tls_waiter waiter;
    const struct mk_tls_on_demand *source;
};

/* ---- Certificates of a thread ---- */

struct cached_certificate {
    struct cached_certificate *next; /* in its set */
    struct cached_certificate *newer, *older;
    struct mk_tls_loaded_keypair pair;
    struct stat file;
    time_t checked, expires;
    size_t set;
    char path[];
};

struct certificate_cache {
    struct mk_hash_key key;
    struct cached_certificate *sets[SETS];
    struct cached_certificate *newest, *oldest; /* by use */
    size_t n;
};

static _Thread_local struct certificate_cache *thread_cache;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void unlink_use(struct certificate_cache *cache, struct cached_certificate *one)
{
    *(one->newer ? &one->newer->older : &cache->newest) = one->older;
    *(one->older ? &one->older->newer : &cache->oldest) = one->newer;
}

static void link_newest(struct certificate_cache *cache, struct cached_certificate *one)
{
    one->newer = NULL;
    one->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = one;
    cache->newest = one;
}

static void drop_certificate(struct certificate_cache *cache, struct cached_certificate *one)
{
    struct cached_certificate **at = &cache->sets[one->set];
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    unlink_use(cache, one);
    cache->n--;
    mk_tls_loaded_keypair_free(&one->pair);
    mk_mem_free(one);
}

static void free_cache(void *p)
{
    struct certificate_cache *cache = p;
    while (cache->newest)
        drop_certificate(cache, cache->newest);
    mk_mem_free(cache);
}

static void create_thread_key(void)
{
    has_key = pthread_key_create(&key, free_cache) == 0;
}

static struct certificate_cache *get_cache(void)
{
    if (thread_cache)
        return thread_cache;
    pthread_once(&key_once, create_thread_key);
    thread_cache = has_key ? mk_mem_zalloc(1, sizeof *thread_cache) : NULL;
    if (thread_cache && pthread_setspecific(key, thread_cache)) {
        mk_mem_free(thread_cache);
        thread_cache = NULL;
    }
    if (thread_cache)
        mk_random(&thread_cache->key, sizeof thread_cache->key);
    return thread_cache;
}

/* ---- Reading ---- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static time_t expiry_of(const X509 *leaf)
{
    struct tm tm;
    return ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &tm) ? timegm(&tm) : 0;
}

/* The status is taken first, so that a replacement after that is noticed at the next check. */
static struct cached_certificate *read_certificate(const char *path, size_t len, time_t now)
{
    struct cached_certificate *one = mk_mem_zalloc(1, sizeof *one + len + 1);
    if (one && lstat(path, &one->file) == 0 && mk_tls_keypair_read(path, &one->pair) == 0) {
        memcpy(one->path, path, len + 1);
        one->checked = now;
        one->expires = expiry_of(one->pair.leaf);
        return one;
    }
    mk_mem_free(one);
    return NULL;
}

static struct cached_certificate *add_certificate(struct certificate_cache *cache, const char *path,
                                                  size_t len, size_t set, time_t now)
{
    struct cached_certificate *one = read_certificate(path, len, now);
    if (!one)
        return NULL;
    if (cache->n == CERTIFICATES_MAX)
        drop_certificate(cache, cache->oldest);
    one->set = set;
    one->next = cache->sets[set];
    cache->sets[set] = one;
    link_newest(cache, one);
    cache->n++;
    return one;
}

/* A file is examined again after RECHECK_S, or if `is_new`. */
static bool is_current(struct cached_certificate *one, time_t now, bool is_new)
{
    struct stat st;
    if (!is_new && now >= one->checked && now - one->checked < RECHECK_S)
        return true;
    one->checked = now;
    return lstat(one->path, &st) == 0 && is_same_file(&st, &one->file);
}

/* Returns the certificate of the file; NULL: there is none. The next call may free it. */
static const struct cached_certificate *find_certificate(const char *path, size_t len, bool is_new)
{
    struct certificate_cache *cache = get_cache();
    time_t now = time(NULL);
    if (!cache)
        return NULL;
    size_t set = (size_t)mk_hash(&cache->key, mk_str_of(path, len)) % SETS;
    struct cached_certificate *one = cache->sets[set];
    while (one && strcmp(one->path, path) != 0)
        one = one->next;
    if (!one)
        return add_certificate(cache, path, len, set, now);
    if (!is_current(one, now, is_new)) {
        drop_certificate(cache, one);
        return add_certificate(cache, path, len, set, now);
    }
    unlink_use(cache, one);
    link_newest(cache, one);
    return one;
}

/* ---- Waiting ---- */

static mk_err start_demand(struct mk_tls *t, const struct mk_tls_on_demand *source, const char *name)
{
    struct mk_tls_demand *d = mk_mem_alloc(sizeof *d);
    if (!d)
        return -ENOMEM;
    *d = (struct mk_tls_demand){.waiter = {.stream = t->stream}, .source = source};
    mk_err e = source->request(source, mk_str_from_c(name), &d->waiter);
    if (e) {
        mk_mem_free(d);
        return e;
    }
    t->demand = d;
    return 0;
}

void mk_tls_on_demand_cancel(struct mk_tls *t)
{
    struct mk_tls_demand *d = t->demand;
    if (d && d->waiter.state == MK_TLS_WAITING)
        d->source->cancel(d->source, &d->waiter);
    mk_mem_free(d);
    t->demand = NULL;
}

/* ---- Presenting ---- */

/* Does a certificate of the configuration cover the name? */
static bool is_covered(const struct mk_tls_context *c, const char *name)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (X509_check_host(c->sources[i].leaf, name, 0, 0, NULL) == 1)
            return true;
    return false;
}

/* Sessions of one name must not be resumed for another: its certificate would not be checked. */
static bool set_session_context(SSL *ssl, const struct mk_tls_context *c, const char *name)
{
    unsigned char digest[EVP_MAX_MD_SIZE], text[sizeof c->session_id + 256];
    size_t len = strlen(name);
    unsigned n;
    if (len > 256)
        return false;
    memcpy(text, c->session_id, sizeof c->session_id);
    memcpy(text + sizeof c->session_id, name, len);
    return EVP_Digest(text, sizeof c->session_id + len, digest, &n, EVP_sha256(), NULL) &&
           SSL_set_session_id_context(ssl, digest, n);
}

static mk_err present(SSL *ssl, const struct mk_tls_context *c, const struct cached_certificate *one,
                      const char *name)
{
    SSL_certs_clear(ssl); /* those of the context may have other key types */
    bool ok = SSL_use_cert_and_key(ssl, one->pair.leaf, one->pair.key, one->pair.chain, 1) == 1 &&
              set_session_context(ssl, c, name);
    ERR_clear_error();
    return ok ? 0 : -ENOMEM;
}

mk_err mk_tls_on_demand_apply(struct mk_tls *t, const struct mk_tls_context *c, const char *name)
{
    char path[PATH_SIZE];
    if (t->demand && t->demand->waiter.state == MK_TLS_WAITING)
        return -EINPROGRESS;
    if (is_covered(c, name))
        return 0;
    int len = snprintf(path, sizeof path, "%s/%s.pem", c->on_demand->folder, name);
    if (len <= 0 || len >= (int)sizeof path)
        return -ENOENT;
    bool has_waited = t->demand;
    mk_tls_on_demand_cancel(t);
    const struct cached_certificate *one = find_certificate(path, (size_t)len, has_waited);
    bool is_usable = one && one->expires > time(NULL);
    if (!is_usable && !has_waited && start_demand(t, c->on_demand, name) == 0)
        return -EINPROGRESS;
    /* An expired certificate is better than none: the clock of this machine may be wrong. */
    return one ? present(t->ssl, c, one, name) : -ENOENT;
}
