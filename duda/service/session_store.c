/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_store.h"

#include <errno.h>
#include <monkey/text.h>

#include "service/cookies.h"
#include "service/session_config.h"

enum { SLACK_MAX_S = 60 };

const struct duda_session_store *duda_session_store_of(struct duda_ctx *d)
{
    const struct duda_service_session_store *own = d->worker_ctx->own_stores;
    while (own && own->owner != d->owner)
        own = own->next;
    return own ? own->store : d->worker_ctx->store;
}

bool duda_session_is_in_cookie(struct duda_ctx *d)
{
    return !duda_session_store_of(d) && d->worker_ctx->session_config->store == DUDA_SESSION_BACKEND_COOKIE;
}

bool duda_session_is_in_memory(struct duda_ctx *d)
{
    return !duda_session_store_of(d) && d->worker_ctx->session_config->store == DUDA_SESSION_BACKEND_MEMORY;
}

bool duda_session_has_no_store(struct duda_ctx *d)
{
    return !duda_session_store_of(d) && d->worker_ctx->session_config->store == DUDA_SESSION_BACKEND_STORE;
}

/* ---- Times ---- */

static int64_t ms_to_seconds(uint32_t ms)
{
    return (ms + 999) / 1000;
}

/* The time of the request is too early: a handler may run for hours, for example with a WebSocket. */
static int64_t store_now(const struct duda_session *s)
{
    return mk_worker_now(duda_worker(s->d));
}

/* At least one second: times are whole seconds. */
int64_t duda_session_write_interval_s(const struct duda_session_config *v)
{
    int64_t quarter = ms_to_seconds(v->idle_ms) / 4;
    return quarter < 1 ? 1 : quarter > SLACK_MAX_S ? SLACK_MAX_S : quarter;
}

uint32_t duda_session_ttl_s(const struct duda_session *s)
{
    const struct duda_session_config *v = s->d->worker_ctx->session_config;
    int64_t left = s->began + ms_to_seconds(v->life_ms) - store_now(s);
    int64_t idle = ms_to_seconds(v->idle_ms) + duda_session_write_interval_s(v);
    return left <= 0 ? 0 : (uint32_t)(left < idle ? left : idle);
}

/* ---- MACs ---- */

typedef unsigned char seal_key[DUDA_COOKIE_CRYPTO_KEY];

/* Returns the values that the session is bound to: its ID, service and host. */
static mk_str session_crypto_context(const struct duda_session *s)
{
    return duda_cookie_crypto_context(s->d, mk_str_of(s->id, sizeof s->id));
}

static mk_str store_key_text(const struct duda_session *s)
{
    return mk_str_of(s->key, sizeof s->key);
}

/* IDs have 256 random bits, so a plain hash without a secret does not reveal them. */
int duda_session_derive_key(struct duda_session *s)
{
    char buf[64 + sizeof s->id], hash[sizeof s->key_bytes];
    struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&name, MK_STR("duda session "));
    mk_buf_add(&name, mk_str_of(s->id, sizeof s->id));
    mk_str context = duda_cookie_crypto_context(s->d, mk_buf_str(&name));
    if (!context.p)
        return -ENOMEM;
    mk_sha256(context, hash);
    duda_session_set_key(s, (const unsigned char *)hash);
    return 0;
}

void duda_session_set_key(struct duda_session *s, const unsigned char key[DUDA_SESSION_ID_LEN / 2])
{
    struct mk_buf text = mk_buf_fixed(s->key, sizeof s->key);
    memcpy(s->key_bytes, key, sizeof s->key_bytes);
    mk_hex_encode(&text, mk_str_of((const char *)key, sizeof s->key_bytes));
}

/* Cookie keys must not be reused, so each purpose of a record has a derived key. */
static void derive_record_key(const seal_key key, mk_str purpose, unsigned char out[DUDA_SIPHASH_KEY])
{
    static const char label[] = "duda session record";
    unsigned char buf[sizeof label + DUDA_COOKIE_CRYPTO_KEY - DUDA_SIPHASH_KEY], first[DUDA_SIPHASH_TAG];
    memcpy(buf, label, sizeof label);
    memcpy(buf + sizeof label, key + DUDA_SIPHASH_KEY, DUDA_COOKIE_CRYPTO_KEY - DUDA_SIPHASH_KEY);
    duda_siphash128(key, mk_str_of((const char *)buf, sizeof buf), first);
    duda_siphash128(first, purpose, out);
    explicit_bzero(buf, sizeof buf);
}

/* Authenticates the body of a record. Returns false if out of memory. */
static bool sign_record(const struct duda_session *s, const seal_key key, mk_str body,
                        unsigned char proof[DUDA_SIPHASH_TAG])
{
    unsigned char derived[DUDA_SIPHASH_KEY];
    mk_str purpose = session_crypto_context(s);
    if (purpose.p) {
        derive_record_key(key, purpose, derived);
        duda_siphash128(derived, body, proof);
    }
    return purpose.p;
}

/* Gets the key that signs records. Without configured keys, the store may hold one key for all its users. */
static int get_signing_key(struct duda_ctx *d, bool is_fresh, seal_key out)
{
    const struct duda_session_store *store = duda_session_store_of(d);
    const struct duda_session_config *v = d->worker_ctx->session_config;
    if (!v->has_secret && store && store->key)
        return store->key(d, is_fresh, out);
    memcpy(out, store ? v->keys[0] : v->own_key, sizeof(seal_key));
    return 0;
}

static bool record_mac_matches(const struct duda_session *s, const seal_key key, mk_str record)
{
    unsigned char proof[DUDA_SIPHASH_TAG];
    return sign_record(s, key, mk_str_skip(record, DUDA_SIPHASH_TAG), proof) &&
           mk_consttime_eq(mk_str_of((const char *)proof, sizeof proof),
                           mk_str_first(record, DUDA_SIPHASH_TAG));
}

/* Returns 0, or -ENOENT if this server did not write the record. */
static int verify_record(struct duda_session *s, mk_str record)
{
    const struct duda_session_config *v = s->d->worker_ctx->session_config;
    seal_key key;
    if (record.len < DUDA_SIPHASH_TAG)
        return -ENOENT;
    int e = get_signing_key(s->d, false, key);
    if (e || record_mac_matches(s, key, record))
        return e;
    for (size_t i = 1; v->has_secret && i < v->n_keys; i++)
        if (record_mac_matches(s, v->keys[i], record))
            return 0;
    if (v->has_secret || !duda_session_store_of(s->d) || !duda_session_store_of(s->d)->key)
        return -ENOENT;
    e = get_signing_key(s->d, true, key); /* the store may have lost the key that this worker cached */
    return e ? e : record_mac_matches(s, key, record) ? 0 : -ENOENT;
}

/* `buf` has DUDA_SESSION_MAX bytes. */
static int encode_signed_record(const struct duda_session *s, char *buf, mk_str *out)
{
    struct mk_buf body = mk_buf_fixed(buf + DUDA_SIPHASH_TAG, DUDA_SESSION_MAX - DUDA_SIPHASH_TAG);
    unsigned char proof[DUDA_SIPHASH_TAG];
    seal_key key;
    duda_session_encode(s, &body);
    if (body.failed)
        return -EMSGSIZE;
    int e = get_signing_key(s->d, false, key);
    if (!e && !sign_record(s, key, mk_buf_str(&body), proof))
        e = -ENOMEM;
    if (e)
        return e;
    memcpy(buf, proof, sizeof proof);
    *out = mk_str_of(buf, DUDA_SIPHASH_TAG + body.len);
    return 0;
}

/* ---- Sessions in shared memory ---- */

static int save_in_memory(const struct duda_session *s, mk_str record, uint32_t left)
{
    const struct duda_session_shm *shm = &s->d->worker_ctx->session_config->shm;
    struct mk_addr client;
    mk_addr_client_prefix(mk_request_client_addr(s->d->request), &client);
    const struct duda_session_shm_client shm_client = {.address = duda_session_shm_hash_client(shm, &client),
                                                       .is_known = s->is_renewed,
                                                       .is_revocation = s->is_revocation};
    if (s->is_new)
        return duda_session_shm_insert(shm, s->key_bytes, record, &shm_client, s->used, left) ? 0 : -EBUSY;
    return duda_session_shm_replace(shm, s->key_bytes, record, &shm_client, s->used, left) ? 0 : -ENOENT;
}

static int load_from_memory(struct duda_session *s, mk_str *out)
{
    char *buf = duda_session_record_buf(s);
    struct mk_buf record = mk_buf_fixed(buf, DUDA_SESSION_MAX);
    const struct duda_session_config *v = s->d->worker_ctx->session_config;
    if (!buf)
        return -ENOMEM;
    uint32_t idle = s->is_record ? 0 : (uint32_t)ms_to_seconds(v->idle_ms) + 1;
    if (!duda_session_shm_load(&v->shm, s->key_bytes, store_now(s), idle, &record))
        return -ENOENT;
    *out = mk_buf_str(&record);
    return 0;
}

/* ---- All stores ---- */

int duda_session_store_load(struct duda_session *s)
{
    const struct duda_session_store *store = duda_session_store_of(s->d);
    mk_str record = MK_STR_NULL;
    int e = store ? store->load(s->d, store_key_text(s), &record) : load_from_memory(s, &record);
    e = e ? e : verify_record(s, record);
    return e ? e : duda_session_decode(s, mk_str_skip(record, DUDA_SIPHASH_TAG)) ? 0 : -ENOENT;
}

static int save_in_store(const struct duda_session *s, const struct duda_session_store *store, mk_str record,
                         uint32_t left)
{
    return (s->is_new || !store->replace ? store->save : store->replace)(s->d, store_key_text(s), record,
                                                                         left);
}

static int save_with_ttl(struct duda_session *s, uint32_t left)
{
    const struct duda_session_store *store = duda_session_store_of(s->d);
    char *buf = duda_session_record_buf(s);
    mk_str record;
    s->used = store_now(s);
    int e = buf ? encode_signed_record(s, buf, &record) : -ENOMEM;
    if (e)
        return e;
    return store ? save_in_store(s, store, record, left) : save_in_memory(s, record, left);
}

int duda_session_store_save(struct duda_session *s)
{
    int e = save_with_ttl(s, duda_session_ttl_s(s));
    if (!e)
        s->is_new = false;
    if (e == -ENOENT) {
        s->exists = false;
        s->n = 0;
    }
    return e;
}

int duda_session_store_put(struct duda_session *s, uint32_t seconds)
{
    s->is_new =
        !duda_session_is_in_memory(s->d); /* in memory, an insertion replaces no record with this ID */
    int e = save_with_ttl(s, seconds);
    if (e != -ENOENT)
        return e;
    s->is_new = true;
    return save_with_ttl(s, seconds);
}

int duda_session_store_check(struct duda_session *s, int64_t *used)
{
    const struct duda_session_store *store = duda_session_store_of(s->d);
    const struct duda_session_config *v = s->d->worker_ctx->session_config;
    mk_str record;
    if (store)
        return store->load(s->d, store_key_text(s), &record);
    int64_t ends = duda_session_shm_expiry(&v->shm, s->key_bytes, store_now(s));
    int64_t since = ends - ms_to_seconds(v->idle_ms) - duda_session_write_interval_s(v);
    if (ends && since > *used)
        *used = since;
    return ends ? 0 : -ENOENT;
}

int duda_session_store_delete(struct duda_session *s)
{
    const struct duda_session_store *store = duda_session_store_of(s->d);
    if (store)
        return store->destroy(s->d, store_key_text(s));
    return duda_session_shm_delete(&s->d->worker_ctx->session_config->shm, s->key_bytes) ? 0 : -ENOENT;
}

void duda_session_store_free_all(struct duda_worker_ctx *worker_ctx)
{
    while (worker_ctx->own_stores) {
        struct duda_service_session_store *own = worker_ctx->own_stores;
        worker_ctx->own_stores = own->next;
        mk_mem_free(own);
    }
}
