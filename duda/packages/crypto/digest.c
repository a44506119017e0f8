/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes, HMAC and HKDF with OpenSSL's EVP interface. */
#include "digest.h"

#include <errno.h>
#include <monkey/mem.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <pthread.h>

struct duda_hasher {
    EVP_MD_CTX *ctx;
};

/* The digests are cached, because OpenSSL would look them up by name on each use. */
static EVP_MD *fetched[DUDA_SHA1 + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Does not load OpenSSL's configuration file: the sandbox denies access, and the file must not affect
 * services. */
static void fetch_digests(void)
{
    static const char *const names[] = {"SHA256", "SHA384", "SHA512", "SHA3-256", "SHA1"};
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
    for (size_t i = 0; i < MK_LEN(names); i++)
        fetched[i] = EVP_MD_fetch(NULL, names[i], NULL);
}

const EVP_MD *duda_digest_md(enum duda_digest digest)
{
    pthread_once(&once, fetch_digests);
    return (unsigned)digest < MK_LEN(fetched) ? fetched[digest] : NULL;
}

int duda_hash(enum duda_digest digest, mk_str data, struct duda_hash *out)
{
    const EVP_MD *md = duda_digest_md(digest);
    unsigned len = 0;
    if (!md || EVP_Digest(duda_str_bytes(data), data.len, out->bytes, &len, md, NULL) != 1)
        return -ENOMEM;
    out->len = len;
    return 0;
}

struct duda_hasher *duda_hasher_new(enum duda_digest digest)
{
    const EVP_MD *md = duda_digest_md(digest);
    struct duda_hasher *h = mk_mem_zalloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->ctx = EVP_MD_CTX_new();
    if (md && h->ctx && EVP_DigestInit_ex2(h->ctx, md, NULL) == 1)
        return h;
    duda_hasher_free(h);
    return NULL;
}

int duda_hasher_update(struct duda_hasher *h, mk_str data)
{
    return EVP_DigestUpdate(h->ctx, duda_str_bytes(data), data.len) == 1 ? 0 : -ENOMEM;
}

int duda_hasher_final(struct duda_hasher *h, struct duda_hash *out)
{
    unsigned len = 0;
    if (EVP_DigestFinal_ex(h->ctx, out->bytes, &len) != 1)
        return -ENOMEM;
    out->len = len;
    return 0;
}

void duda_hasher_free(struct duda_hasher *h)
{
    if (h)
        EVP_MD_CTX_free(h->ctx);
    mk_mem_free(h);
}

int duda_hmac(enum duda_digest digest, mk_str key, mk_str data, struct duda_hash *out)
{
    const EVP_MD *md = duda_digest_md(digest);
    unsigned len = 0;
    if (!md || key.len > INT32_MAX ||
        !HMAC(md, duda_str_bytes(key), (int)key.len, duda_str_bytes(data), data.len, out->bytes, &len))
        return -ENOMEM;
    out->len = len;
    return 0;
}

/* RFC 5869, section 2.3: T(i) = HMAC(PRK, T(i-1) | info | i). */
static int hkdf_expand(enum duda_digest digest, mk_str prk, mk_str info, uint8_t *out, size_t size)
{
    struct duda_hash block = {.len = 0};
    struct mk_buf text = mk_buf_growing(info.len + DUDA_DIGEST_MAX + 1);
    int e = 0;
    for (unsigned i = 1; size && !e; i++) {
        mk_buf_clear(&text);
        mk_buf_add(&text, duda_hash_str(&block));
        mk_buf_add(&text, info);
        mk_buf_add_char(&text, (char)i);
        e = text.failed ? -ENOMEM : duda_hmac(digest, prk, mk_buf_str(&text), &block);
        size_t n = size < block.len ? size : block.len;
        if (!e)
            memcpy(out, block.bytes, n);
        out += n;
        size -= n;
    }
    OPENSSL_cleanse(text.p, text.cap);
    mk_buf_free(&text);
    OPENSSL_cleanse(&block, sizeof block);
    return e;
}

int duda_hkdf(enum duda_digest digest, mk_str secret, mk_str salt, mk_str info, void *out, size_t size)
{
    static const char no_salt[DUDA_DIGEST_MAX];
    struct duda_hash prk;
    const EVP_MD *md = duda_digest_md(digest);
    if (!md)
        return -ENOMEM;
    size_t len = (size_t)EVP_MD_get_size(md);
    if (size > 255 * len || info.len > INT32_MAX)
        return -EINVAL;
    int e = duda_hmac(digest, salt.len ? salt : mk_str_of(no_salt, len), secret, &prk);
    if (!e)
        e = hkdf_expand(digest, duda_hash_str(&prk), info, out, size);
    OPENSSL_cleanse(&prk, sizeof prk);
    return e;
}
