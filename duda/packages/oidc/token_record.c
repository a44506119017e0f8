/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a session, encrypted in a store. The session contains a random secret. Two values are derived
 * from it: the key of the record in the store, and the key that encrypts the record. The contents of the
 * store alone reveal no token, and the record of a session that has ended can no longer be decrypted. */
#include <duda/crypto.h>
#include <duda/json.h>
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/store.h>
#include <errno.h>
#include <monkey/json.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "oidc.h"

/* REFRESH_EARLY_S: an access token is refreshed this long before it expires or, if it lives for less than two
 * minutes, in the last quarter of its life, so that it does not expire on its way to another server. */
enum { KEY = 32, ID = 24, NONCE = 12, TAG = 16, RECORD_MAX = 60 * 1024, REFRESH_EARLY_S = 30 };

static const struct duda_schema_field tokens_fields[] = {
    DUDA_STRING(struct oidc_tokens, access_token, .optional = true, .max_length = RECORD_MAX),
    DUDA_STRING(struct oidc_tokens, refresh_token, .optional = true, .max_length = RECORD_MAX),
    DUDA_STRING(struct oidc_tokens, id_token, .optional = true, .max_length = RECORD_MAX),
    DUDA_STRING(struct oidc_tokens, sub, .max_length = RECORD_MAX),
    DUDA_INTEGER(struct oidc_tokens, refresh_at),
    DUDA_INTEGER(struct oidc_tokens, expires_at),
    DUDA_INTEGER(struct oidc_tokens, ends_at),
};
static const struct duda_schema tokens_schema = DUDA_SCHEMA(struct oidc_tokens, tokens_fields);

/* ---- Tokens ---- */

/* Returns the number of seconds; 0: absent or invalid. */
static int64_t parse_lifetime(mk_str json)
{
    int64_t n = 0;
    for (size_t i = 0; i < json.len && n < INT32_MAX; i++) {
        if (json.p[i] >= '0' && json.p[i] <= '9')
            n = 10 * n + (json.p[i] - '0');
        else if (json.p[i] != '"')
            break;
    }
    return n;
}

void oidc_tokens_update(struct duda_ctx *d, struct oidc_tokens *tokens,
                        const struct oidc_token_response *response)
{
    int64_t life = parse_lifetime(response->expires_in), now = oidc_now(d);
    int64_t early = life / 4 < REFRESH_EARLY_S ? life / 4 : REFRESH_EARLY_S;
    tokens->access_token = response->access_token;
    tokens->expires_at = life ? now + life : 0;
    tokens->refresh_at = life ? now + life - early : 0;
    if (response->refresh_token.len)
        tokens->refresh_token = response->refresh_token;
    if (response->id_token.len)
        tokens->id_token = response->id_token;
}

static void write_member(struct mk_json_writer *w, const char *name, mk_str value)
{
    if (value.p)
        mk_json_string(mk_json_key(w, name), value);
}

static void write_tokens(struct mk_buf *out, const struct oidc_tokens *tokens)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    write_member(&w, "access_token", tokens->access_token);
    write_member(&w, "refresh_token", tokens->refresh_token);
    write_member(&w, "id_token", tokens->id_token);
    write_member(&w, "sub", tokens->sub);
    mk_json_int(mk_json_key(&w, "refresh_at"), tokens->refresh_at);
    mk_json_int(mk_json_key(&w, "expires_at"), tokens->expires_at);
    mk_json_int(mk_json_key(&w, "ends_at"), tokens->ends_at);
    mk_json_end_object(&w);
}

/* ---- Encryption: AES-256-GCM ---- */

static const unsigned char *bytes_of(mk_str text)
{
    return (const unsigned char *)text.p;
}

/* Derives a value from the secret. The issuer is the salt, so a record of one provider is useless for
 * another. */
static bool derive(const struct oidc_provider *p, mk_str secret, const char *purpose, unsigned char *out,
                   size_t size)
{
    return !duda_hkdf(DUDA_SHA256, secret, p->settings->base.location, mk_str_from_c(purpose), out, size);
}

static bool encrypt_text(EVP_CIPHER_CTX *ctx, const unsigned char *key, mk_str text, unsigned char *out)
{
    int n = 0;
    mk_random(out, NONCE);
    return EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, out) == 1 &&
           EVP_EncryptUpdate(ctx, out + NONCE, &n, bytes_of(text), (int)text.len) == 1 &&
           EVP_EncryptFinal_ex(ctx, out + NONCE + n, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG, out + NONCE + text.len) == 1;
}

static bool decrypt_text(EVP_CIPHER_CTX *ctx, const unsigned char *key, mk_str sealed, unsigned char *out)
{
    int n = 0;
    size_t len = sealed.len - NONCE - TAG;
    unsigned char tag[TAG];
    memcpy(tag, sealed.p + NONCE + len, TAG);
    return EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, bytes_of(sealed)) == 1 &&
           EVP_DecryptUpdate(ctx, out, &n, bytes_of(sealed) + NONCE, (int)len) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
           EVP_DecryptFinal_ex(ctx, out + n, &n) == 1;
}

/* Returns an absent string if out of memory. */
static mk_str encrypt_record(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret, mk_str text)
{
    unsigned char key[KEY];
    unsigned char *out = duda_alloc(d, NONCE + text.len + TAG);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool done = out && ctx && derive(p, secret, "duda oidc tokens key", key, sizeof key) &&
                encrypt_text(ctx, key, text, out);
    EVP_CIPHER_CTX_free(ctx);
    OPENSSL_cleanse(key, sizeof key);
    return done ? mk_str_of((const char *)out, NONCE + text.len + TAG) : MK_STR_NULL;
}

/* Returns an absent string if the record was not encrypted with this secret, or if out of memory. */
static mk_str decrypt_record(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret, mk_str sealed)
{
    unsigned char key[KEY];
    if (sealed.len < NONCE + TAG)
        return MK_STR_NULL;
    unsigned char *out = duda_alloc(d, sealed.len);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool done = out && ctx && derive(p, secret, "duda oidc tokens key", key, sizeof key) &&
                decrypt_text(ctx, key, sealed, out);
    EVP_CIPHER_CTX_free(ctx);
    OPENSSL_cleanse(key, sizeof key);
    return done ? mk_str_of((const char *)out, sealed.len - NONCE - TAG) : MK_STR_NULL;
}

/* ---- Records ---- */

struct duda_store *oidc_token_store(struct duda_ctx *d, const struct oidc_provider *p)
{
    return duda_store_find(d, p->settings->token_store.p);
}

mk_str oidc_record_id(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret)
{
    unsigned char id[ID];
    char buf[2 * ID];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    if (!derive(p, secret, "duda oidc tokens id", id, sizeof id))
        return MK_STR_NULL;
    duda_base64url_encode(&text, mk_str_of((const char *)id, sizeof id));
    return duda_sprintf(d, "oidc tokens %.*s", MK_STR_ARG(mk_buf_str(&text)));
}

int oidc_record_load(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret,
                     struct oidc_tokens *out)
{
    const struct mk_allocator memory = duda_allocator_of(d);
    struct duda_validation_errors errors;
    mk_str id = oidc_record_id(d, p, secret), sealed;
    *out = (struct oidc_tokens){.sub = MK_STR_NULL};
    int e = id.p ? duda_store_get(d, oidc_token_store(d, p), id, &sealed) : -ENOMEM;
    if (e)
        return e;
    mk_str text = decrypt_record(d, p, secret, sealed);
    e = text.p ? duda_json_read(text, &tokens_schema, &memory, NULL, out, &errors) : -ENOENT;
    return e && e != -ENOMEM ? -ENOENT : e;
}

typedef int write_fn(struct duda_ctx *d, struct duda_store *store, mk_str key, mk_str value, uint64_t ttl_ms);

static int write_record(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret,
                        const struct oidc_tokens *tokens, write_fn *write)
{
    struct mk_buf text = mk_buf_growing(RECORD_MAX);
    int64_t life = tokens->ends_at - oidc_now(d);
    mk_str id = oidc_record_id(d, p, secret);
    write_tokens(&text, tokens);
    bool is_complete = !text.failed;
    mk_str sealed = is_complete ? encrypt_record(d, p, secret, mk_buf_str(&text)) : MK_STR_NULL;
    mk_buf_free(&text);
    if (!is_complete)
        return duda_reason(d, -EMSGSIZE, "the provider's tokens have more than %d bytes", RECORD_MAX);
    if (!id.p || !sealed.p)
        return -ENOMEM;
    int e = write(d, oidc_token_store(d, p), id, sealed, life > 0 ? (uint64_t)life * 1000 : 1000);
    return e == -ENOLINK ? 0 : e; /* stored, but on fewer replicas than configured */
}

int oidc_record_create(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret,
                       const struct oidc_tokens *tokens)
{
    return write_record(d, p, secret, tokens, duda_store_add);
}

int oidc_record_replace(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret,
                        const struct oidc_tokens *tokens)
{
    return write_record(d, p, secret, tokens, duda_store_replace);
}

int oidc_record_delete(struct duda_ctx *d, const struct oidc_provider *p, mk_str secret)
{
    mk_str id = oidc_record_id(d, p, secret);
    int e = id.p ? duda_store_delete_if(d, oidc_token_store(d, p), id, MK_STR_NULL) : -ENOMEM;
    return e == -ENOLINK ? 0 : e;
}
