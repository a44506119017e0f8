/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_store.h"

#include <errno.h>
#include <monkey/text.h>

#include "service/cookies.h"
#include "service/keys.h"

enum { SLACK_MAX_S = 60 };

static const struct duda_session_store *store_of(const struct duda *d)
{
    const struct duda_own_store *own = d->home->own_stores;
    while (own && own->owner != d->owner)
        own = own->next;
    return own ? own->store : d->home->store;
}

bool duda_session_is_in_cookie(const struct duda *d)
{
    return !store_of(d) && d->home->visits->store == DUDA_STORE_COOKIE;
}

bool duda_session_is_in_vault(const struct duda *d)
{
    return !store_of(d) && d->home->visits->store == DUDA_STORE_MEMORY;
}

bool duda_session_is_nowhere(const struct duda *d)
{
    return !store_of(d) && d->home->visits->store == DUDA_STORE_NAMED;
}

/* ---- Times ---- */

static int64_t seconds(uint32_t ms)
{
    return (ms + 999) / 1000;
}

/* At least one: times are whole seconds. */
int64_t duda_session_slack(const struct duda_visits *v)
{
    int64_t quarter = seconds(v->idle_ms) / 4;
    return quarter < 1 ? 1 : quarter > SLACK_MAX_S ? SLACK_MAX_S : quarter;
}

uint32_t duda_session_seconds_left(const struct duda_session *s)
{
    const struct duda_visits *v = s->d->home->visits;
    int64_t left = s->began + seconds(v->life_ms) - mk_request_time(s->d->request);
    int64_t idle = seconds(v->idle_ms) + duda_session_slack(v);
    return left <= 0 ? 0 : (uint32_t)(left < idle ? left : idle);
}

/* ---- Proofs ---- */

typedef unsigned char seal_key[DUDA_SEAL_KEY];

/* Whom a session belongs to: its number, service and host. */
static mk_str purpose_of(const struct duda_session *s)
{
    return duda_cookies_purpose(s->d, mk_str_of(s->id, sizeof s->id));
}

static mk_str key_text(const struct duda_session *s)
{
    return mk_str_of(s->key, sizeof s->key);
}

/* Numbers have 256 random bits, so the hash does not reveal one, and the hash needs no secret. */
int duda_session_bind(struct duda_session *s)
{
    char hash[DUDA_SESSION_ID / 2];
    struct mk_buf text = mk_buf_fixed(s->key, sizeof s->key);
    mk_str purpose = purpose_of(s);
    if (!purpose.p)
        return -ENOMEM;
    mk_hmac_sha256(MK_STR("duda session"), purpose, hash);
    mk_hex_encode(&text, mk_str_of(hash, sizeof hash));
    return 0;
}

/* Keys of cookies are for nothing else, so each purpose of a record has one that is made of them. */
static void derive(const seal_key key, mk_str purpose, unsigned char out[DUDA_MAC_KEY])
{
    static const char what[] = "duda session record";
    unsigned char room[sizeof what + DUDA_SEAL_KEY - DUDA_MAC_KEY], first[DUDA_MAC];
    memcpy(room, what, sizeof what);
    memcpy(room + sizeof what, key + DUDA_MAC_KEY, DUDA_SEAL_KEY - DUDA_MAC_KEY);
    duda_mac(key, mk_str_of((const char *)room, sizeof room), first);
    duda_mac(first, purpose, out);
    explicit_bzero(room, sizeof room);
}

/* Of the body of a record. False: memory is out. */
static bool prove(const struct duda_session *s, const seal_key key, mk_str body,
                  unsigned char proof[DUDA_MAC])
{
    unsigned char derived[DUDA_MAC_KEY];
    mk_str purpose = purpose_of(s);
    if (purpose.p) {
        derive(key, purpose, derived);
        duda_mac(derived, body, proof);
    }
    return purpose.p;
}

/* Without configured keys, the store may keep one for all who use it. */
static int key_of_store(struct duda *d, bool is_fresh, seal_key out)
{
    const struct duda_session_store *store = store_of(d);
    const struct duda_visits *v = d->home->visits;
    if (!v->has_secret && store && store->key)
        return store->key(d, is_fresh, out);
    memcpy(out, store ? v->keys[0] : v->own_key, sizeof(seal_key));
    return 0;
}

static bool is_proven(const struct duda_session *s, const seal_key key, mk_str record)
{
    unsigned char proof[DUDA_MAC];
    return prove(s, key, mk_str_skip(record, DUDA_MAC), proof) &&
           mk_secret_eq(mk_str_of((const char *)proof, sizeof proof), mk_str_first(record, DUDA_MAC));
}

/* 0; -ENOENT: it is none of ours. */
static int check(struct duda_session *s, mk_str record)
{
    const struct duda_visits *v = s->d->home->visits;
    seal_key key;
    if (record.len < DUDA_MAC)
        return -ENOENT;
    int e = key_of_store(s->d, false, key);
    if (e || is_proven(s, key, record))
        return e;
    for (size_t i = 1; v->has_secret && i < v->n_keys; i++)
        if (is_proven(s, v->keys[i], record))
            return 0;
    if (v->has_secret || !store_of(s->d) || !store_of(s->d)->key)
        return -ENOENT;
    e = key_of_store(s->d, true, key); /* it may have lost the one that this worker remembers */
    return e ? e : is_proven(s, key, record) ? 0 : -ENOENT;
}

/* `room` has DUDA_SESSION_MAX bytes. */
static int write_record(const struct duda_session *s, char *room, mk_str *out)
{
    struct mk_buf body = mk_buf_fixed(room + DUDA_MAC, DUDA_SESSION_MAX - DUDA_MAC);
    unsigned char proof[DUDA_MAC];
    seal_key key;
    duda_session_encode(s, &body);
    if (body.failed)
        return -E2BIG;
    int e = key_of_store(s->d, false, key);
    if (!e && !prove(s, key, mk_buf_str(&body), proof))
        e = -ENOMEM;
    if (e)
        return e;
    memcpy(room, proof, sizeof proof);
    *out = mk_str_of(room, DUDA_MAC + body.len);
    return 0;
}

/* ---- The vault ---- */

struct vault_id {
    unsigned char bytes[DUDA_VAULT_ID];
};

static struct vault_id vault_id(const struct duda_session *s)
{
    struct vault_id id;
    for (size_t i = 0; i < sizeof id.bytes; i++)
        id.bytes[i] = (unsigned char)(mk_char_hex(s->key[2 * i]) * 16 + mk_char_hex(s->key[2 * i + 1]));
    return id;
}

static int save_in_vault(const struct duda_session *s, mk_str record)
{
    const struct duda_vault *vault = &s->d->home->visits->vault;
    struct mk_peer client;
    mk_peer_client(mk_request_address(s->d->request), &client);
    const struct duda_vault_visitor visitor = {duda_vault_address(vault, &client), s->is_renewed};
    struct vault_id id = vault_id(s);
    uint32_t left = duda_session_seconds_left(s);
    if (s->is_new)
        return duda_vault_save(vault, id.bytes, record, &visitor, s->used, left) ? 0 : -EBUSY;
    return duda_vault_replace(vault, id.bytes, record, &visitor, s->used, left) ? 0 : -ENOENT;
}

static int load_from_vault(const struct duda_session *s, mk_str *out)
{
    char room[DUDA_SESSION_MAX];
    struct mk_buf record = mk_buf_fixed(room, sizeof room);
    const struct duda_visits *v = s->d->home->visits;
    struct vault_id id = vault_id(s);
    if (!duda_vault_load(&v->vault, id.bytes, mk_request_time(s->d->request),
                         (uint32_t)seconds(v->idle_ms) + 1, &record))
        return -ENOENT;
    *out = duda_copy(s->d, mk_buf_str(&record));
    return out->p ? 0 : -ENOMEM;
}

/* ---- All of them ---- */

int duda_session_load(struct duda_session *s)
{
    const struct duda_session_store *store = store_of(s->d);
    mk_str record = MK_ABSENT;
    int e = store ? store->load(s->d, key_text(s), &record) : load_from_vault(s, &record);
    e = e ? e : check(s, record);
    return e ? e : duda_session_decode(s, mk_str_skip(record, DUDA_MAC)) ? 0 : -ENOENT;
}

static int save_in_store(const struct duda_session *s, const struct duda_session_store *store, mk_str record)
{
    return (s->is_new || !store->replace ? store->save : store->replace)(s->d, key_text(s), record,
                                                                         duda_session_seconds_left(s));
}

int duda_session_save(struct duda_session *s)
{
    const struct duda_session_store *store = store_of(s->d);
    char room[DUDA_SESSION_MAX];
    mk_str record;
    s->used = mk_request_time(s->d->request);
    int e = write_record(s, room, &record);
    if (e)
        return e;
    e = store ? save_in_store(s, store, record) : save_in_vault(s, record);
    if (!e)
        s->is_new = false;
    if (e == -ENOENT) {
        s->exists = false;
        s->n = 0;
    }
    return e;
}

int duda_session_drop(struct duda_session *s)
{
    const struct duda_session_store *store = store_of(s->d);
    if (store)
        return store->drop(s->d, key_text(s));
    struct vault_id id = vault_id(s);
    return duda_vault_drop(&s->d->home->visits->vault, id.bytes) ? 0 : -ENOENT;
}

void duda_session_stores_free(struct duda_home *home)
{
    while (home->own_stores) {
        struct duda_own_store *own = home->own_stores;
        home->own_stores = own->next;
        mk_mem_free(own);
    }
}
