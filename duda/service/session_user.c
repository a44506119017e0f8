/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_user.h"

#include <endian.h>
#include <errno.h>

#include "service/session_config.h"
#include "service/session_store.h"

enum { GENERATION_SIZE = 16, AGENT_MAX = 120, TRIES = 3, FLASH_LIFE_S = 300 };

static int64_t request_now(const struct duda_session *s)
{
    return mk_request_time(s->d->request);
}

static uint32_t life_s(const struct duda_session *s)
{
    return (s->d->worker_ctx->session_config->life_ms + 999) / 1000;
}

mk_str duda_session_own_value(const struct duda_session *s, const char *name)
{
    const struct duda_session_pair *p = s->exists ? duda_session_find_pair(s, mk_str_from_c(name)) : NULL;
    return p ? p->value : MK_STR_NULL;
}

/* ---- Records beside the sessions ---- */

int duda_session_record_init(struct duda_session *record, const struct duda_session *s, char kind,
                             mk_str text)
{
    char hash[DUDA_SESSION_ID_LEN / 2];
    *record = (struct duda_session){
        .d = s->d, .exists = true, .began = request_now(s), .is_renewed = true, .is_record = true};
    struct mk_buf id = mk_buf_fixed(record->id, sizeof record->id);
    mk_hmac_sha256(MK_STR("duda session record"), text, hash);
    mk_hex_encode(&id, mk_str_of(hash, sizeof hash));
    record->id[0] = kind;
    return duda_session_derive_key(record);
}

/* ---- The generation ---- */

int duda_session_user_generation(const struct duda_session *s, mk_str user, mk_str *out)
{
    struct duda_session record;
    *out = MK_STR_NULL;
    int e = duda_session_record_init(&record, s, DUDA_SESSION_RECORD_GENERATION, user);
    e = e ? e : duda_session_store_load(&record);
    if (!e)
        *out = duda_session_own_value(&record, DUDA_SESSION_GENERATION);
    return e == -ENOENT ? 0 : e;
}

int duda_session_user_revoke(const struct duda_session *s, mk_str user, mk_str *out)
{
    struct duda_session record;
    char random[GENERATION_SIZE];
    mk_random(random, sizeof random);
    int e = duda_session_record_init(&record, s, DUDA_SESSION_RECORD_GENERATION, user);
    record.is_revocation = true;
    if (!e)
        e = duda_session_put_pair(&record, MK_STR(DUDA_SESSION_GENERATION), mk_str_of(random, sizeof random));
    e = e ? e : duda_session_store_put(&record, life_s(s));
    if (!e)
        *out = duda_session_own_value(&record, DUDA_SESSION_GENERATION);
    return e;
}

int duda_session_user_check(struct duda_session *s)
{
    mk_str user = duda_session_own_value(s, DUDA_SESSION_USER), current;
    if (!user.p || duda_session_is_in_cookie(s->d))
        return 0;
    int e = duda_session_user_generation(s, user, &current);
    if (e || !current.p || mk_consttime_eq(current, duda_session_own_value(s, DUDA_SESSION_GENERATION)))
        return e;
    e = duda_session_store_delete(s);
    return e && e != -ENOENT ? e : -ENOENT;
}

/* ---- Aliases ---- */

int duda_session_user_put_alias(const struct duda_session *s, mk_str user, mk_str alias)
{
    struct duda_session record;
    int e = duda_session_record_init(&record, s, DUDA_SESSION_RECORD_ALIAS, alias);
    e = e ? e : duda_session_put_pair(&record, MK_STR(DUDA_SESSION_USER), user);
    return e ? e : duda_session_store_put(&record, life_s(s));
}

int duda_session_user_find_alias(const struct duda_session *s, mk_str alias, mk_str *user)
{
    struct duda_session record;
    int e = duda_session_record_init(&record, s, DUDA_SESSION_RECORD_ALIAS, alias);
    e = e ? e : duda_session_store_load(&record);
    *user = e ? MK_STR_NULL : duda_session_own_value(&record, DUDA_SESSION_USER);
    return e ? e : user->p ? 0 : -ENOENT;
}

/* ---- The list ---- */

bool duda_session_user_decode(mk_str value, struct duda_session_entry *out)
{
    if (value.len < DUDA_SESSION_ENTRY_HEAD ||
        value.len < (size_t)DUDA_SESSION_ENTRY_HEAD + (unsigned char)value.p[DUDA_SESSION_ENTRY_HEAD - 1])
        return false;
    memcpy(out->key, value.p, DUDA_SESSION_KEY_SIZE);
    memcpy(&out->began, value.p + DUDA_SESSION_KEY_SIZE, 8);
    memcpy(&out->used, value.p + DUDA_SESSION_KEY_SIZE + 8, 8);
    out->began = be64toh(out->began);
    out->used = be64toh(out->used);
    out->ip_len = (unsigned char)value.p[DUDA_SESSION_ENTRY_HEAD - 1];
    return true;
}

/* Returns the public ID of the session with that key: the beginning of the key, which is a hash of the
 * session ID. */
static mk_str public_id(const char key[DUDA_SESSION_ID_LEN])
{
    return mk_str_of(key, DUDA_SESSION_PUBLIC_ID_LEN);
}

static void encode_entry(const struct duda_session *s, struct mk_buf *out)
{
    uint64_t times[2] = {htobe64((uint64_t)s->began), htobe64((uint64_t)request_now(s))};
    mk_str ip = duda_client_ip(s->d), agent = mk_str_first(duda_header(s->d, "User-Agent"), AGENT_MAX);
    ip = mk_str_first(ip, UINT8_MAX);
    mk_buf_add(out, mk_str_of((const char *)s->key_bytes, sizeof s->key_bytes));
    mk_buf_add(out, mk_str_of((const char *)times, sizeof times));
    mk_buf_add_char(out, (char)ip.len);
    mk_buf_add(out, ip);
    mk_buf_add(out, agent);
}

int duda_session_user_open_list(struct duda_session *list, const struct duda_session *s, mk_str user)
{
    int e = duda_session_record_init(list, s, DUDA_SESSION_RECORD_LIST, user);
    e = e ? e : duda_session_store_load(list);
    return e == -ENOENT ? 0 : e;
}

int duda_session_user_save_list(struct duda_session *list)
{
    if (list->n)
        return duda_session_store_put(list, life_s(list));
    int e = duda_session_store_delete(list);
    return e == -ENOENT ? 0 : e;
}

/* Drops the least recently used session from a full list. */
static void drop_oldest_entry(struct duda_session *list)
{
    struct duda_session_pair *oldest = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < list->n; i++) {
        struct duda_session_entry head;
        uint64_t used = duda_session_user_decode(list->pairs[i].value, &head) ? head.used : 0;
        if (used <= least) {
            least = used;
            oldest = &list->pairs[i];
        }
    }
    if (oldest)
        *oldest = list->pairs[--list->n];
}

int duda_session_user_put_entry(struct duda_session *list, const struct duda_session *s)
{
    char buf[DUDA_SESSION_ENTRY_HEAD + UINT8_MAX + AGENT_MAX];
    struct mk_buf value = mk_buf_fixed(buf, sizeof buf);
    encode_entry(s, &value);
    int e;
    while ((e = duda_session_put_pair(list, public_id(s->key), mk_buf_str(&value))) == -EMSGSIZE && list->n)
        drop_oldest_entry(list);
    return e;
}

/* Concurrent logins of the same user overwrite each other's list, so the function reads the list again to
 * check the entry. */
static void add_to_list(const struct duda_session *s, mk_str user, mk_str old_id)
{
    struct duda_session list;
    for (int i = 0; i < TRIES; i++) {
        if (duda_session_user_open_list(&list, s, user) ||
            (i && duda_session_find_pair(&list, public_id(s->key))))
            return;
        (void)duda_session_put_pair(&list, old_id, MK_STR_NULL);
        if (duda_session_user_put_entry(&list, s) || duda_session_user_save_list(&list))
            return;
    }
}

void duda_session_user_remove_id(const struct duda_session *s, mk_str user, mk_str id)
{
    struct duda_session list;
    if (duda_session_user_open_list(&list, s, user) || !duda_session_find_pair(&list, id))
        return;
    (void)duda_session_put_pair(&list, id, MK_STR_NULL);
    (void)duda_session_user_save_list(&list);
}

void duda_session_user_update(struct duda_session *s, const char old_key[DUDA_SESSION_ID_LEN])
{
    mk_str user = duda_session_own_value(s, DUDA_SESSION_USER);
    if (user.p && !duda_session_is_in_cookie(s->d))
        add_to_list(s, user, public_id(old_key));
}

void duda_session_user_remove(struct duda_session *s)
{
    const struct duda_session_pair *p = duda_session_find_pair(s, MK_STR(DUDA_SESSION_USER));
    if (p && !duda_session_is_in_cookie(s->d))
        duda_session_user_remove_id(s, p->value, public_id(s->key));
}

/* ---- Flash messages ---- */

int duda_session_flash_init(struct duda_session *record, const struct duda_session *s,
                            const char id[DUDA_SESSION_ID_LEN])
{
    int e = duda_session_record_init(record, s, DUDA_SESSION_RECORD_FLASH, mk_str_of(id, sizeof s->id));
    record->is_renewed = s->is_renewed;
    return e;
}

int duda_session_flash_save(struct duda_session *record, const struct duda_session *s)
{
    uint32_t left = duda_session_ttl_s(s);
    return duda_session_store_put(record, left < FLASH_LIFE_S ? left : FLASH_LIFE_S);
}

void duda_session_flash_move(struct duda_session *s, const char old_id[DUDA_SESSION_ID_LEN])
{
    struct duda_session old, record;
    if (duda_session_is_in_cookie(s->d) || duda_session_flash_init(&old, s, old_id) ||
        duda_session_store_load(&old) || duda_session_store_delete(&old) ||
        duda_session_flash_init(&record, s, s->id))
        return;
    record.pairs = old.pairs;
    record.n = record.cap = old.n;
    (void)duda_session_flash_save(&record, s);
}
