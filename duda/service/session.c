/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: state kept between the requests of one browser. */
#include <errno.h>

#include "service/cookies.h"
#include "service/session_config.h"
#include "service/session_request.h"
#include "service/session_store.h"
#include "service/session_user.h"
#include "service/worker_ctx.h"

static int64_t session_now(const struct duda_session *s)
{
    return mk_request_time(s->d->request);
}

/* ---- The session of a request ---- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Checks eight bytes at once: in a difference, the highest bit of each byte tells whether that byte reaches
 * the bound. */
static bool are_hex_digits(const char *eight)
{
    uint64_t x;
    memcpy(&x, eight, sizeof x);
    uint64_t top = EACH(0x80), high = x | top;
    uint64_t digits = (high - EACH('0')) & ~(high - EACH('9' + 1));
    uint64_t letters = (high - EACH('a')) & ~(high - EACH('f' + 1));
    return ((digits | letters) & ~x & top) == top;
}

/* Returns 0, -ENOMEM, or -ENOENT if the client sent no valid ID. */
static int read_session_cookie(struct duda_session *s)
{
    struct duda_cookie_name name;
    mk_str text = duda_cookie(s->d, duda_reserved_cookie_name(s->d, DUDA_COOKIE_SESSION, &name));
    if (text.len != sizeof s->id)
        return -ENOENT;
    memcpy(s->id, text.p, sizeof s->id);
    for (size_t i = 0; i < sizeof s->id; i += 8)
        if (!are_hex_digits(s->id + i))
            return -ENOENT;
    return duda_session_derive_key(s);
}

/* ---- Sessions in cookies ---- */

/* Revokes the session until every copy of its cookie has expired. A copy expires by the time of last use that
 * it contains. Returns false if another request has revoked it. */
static bool revoke_number(const struct duda_session *s, const unsigned char number[DUDA_REVOKED_SESSION_ID],
                          bool is_renewed)
{
    const struct duda_session_config *v = s->d->worker_ctx->session_config;
    struct mk_addr client;
    mk_addr_client_prefix(mk_request_client_addr(s->d->request), &client);
    return duda_revoked_sessions_add(
        v->ended, number, &(struct duda_revoked_session_client){&client, is_renewed}, session_now(s),
        session_now(s) + (v->idle_ms + 999) / 1000 + duda_session_write_interval_s(v));
}

/* Returns false if another request has revoked the old number: then this request must not continue the session. */
static bool revoke_replaced_number(void *ctx)
{
    struct duda_session *s = ctx;
    bool has_replaced = s->has_replaced;
    s->has_replaced = false;
    return !has_replaced || revoke_number(s, s->replaced, s->replaced_was_renewed);
}

static bool is_revoked(const struct duda_session *s, const unsigned char number[DUDA_REVOKED_SESSION_ID])
{
    return duda_revoked_sessions_contain(s->d->worker_ctx->session_config->ended, number, session_now(s));
}

static void set_empty(struct duda_session *s)
{
    s->exists = s->has_replaced = false;
    s->n = 0;
}

/* Drops the values that the session has from the revoked one. A login of this request does not depend on it, so the
 * session continues with the values that this request has set. Without a login, nothing is left. */
static bool keep_login(struct duda_session *s)
{
    const struct duda_session_pair *user = duda_session_find_pair(s, MK_STR(DUDA_SESSION_USER));
    size_t kept = 0;
    if (!user || !user->is_set) {
        set_empty(s);
        return false;
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->pairs[i].is_set)
            s->pairs[kept++] = s->pairs[i];
    s->n = kept;
    s->began = session_now(s);
    s->has_replaced = false;
    return true;
}

/* Another request may have revoked the session, or the number that this one replaces. Returns whether the session
 * still exists. */
static bool check_revocation(struct duda_session *s)
{
    if (is_revoked(s, s->number))
        set_empty(s);
    else if (s->has_replaced && is_revoked(s, s->replaced))
        (void)keep_login(s);
    return s->exists;
}

static bool is_idle_expired(const struct duda_session *s)
{
    const struct duda_session_config *v = s->d->worker_ctx->session_config;
    return s->used + (v->idle_ms + 999) / 1000 + duda_session_write_interval_s(v) <= session_now(s);
}

static bool load_cookie_session(struct duda_session *s)
{
    struct duda_cookie_name name;
    mk_str data = duda_cookie_encrypted(s->d, duda_reserved_cookie_name(s->d, DUDA_COOKIE_SESSION, &name));
    if (data.len < sizeof s->number)
        return false;
    memcpy(s->number, data.p, sizeof s->number);
    return duda_session_decode(s, mk_str_skip(data, sizeof s->number)) && !is_idle_expired(s) &&
           !is_revoked(s, s->number);
}

/* The old number is revoked when nothing but a lack of memory can prevent that the client gets the new one. Returns
 * -ESTALE if another request has revoked the old number. */
static int set_session_cookie(struct duda_session *s)
{
    struct duda_cookie_name name;
    char *buf = duda_session_record_buf(s);
    struct mk_buf data = mk_buf_fixed(buf, buf ? DUDA_SESSION_MAX : 0);
    s->used = session_now(s);
    mk_buf_add(&data, mk_str_of((const char *)s->number, sizeof s->number));
    duda_session_encode(s, &data);
    const struct mk_cookie cookie = {.name = duda_reserved_cookie_name(s->d, DUDA_COOKIE_SESSION, &name),
                                     .value = mk_buf_str(&data)};
    return duda_response_has_started(s->d) ? -EALREADY
           : !buf                          ? -ENOMEM
           : data.failed                   ? -EMSGSIZE
                         : duda_cookie_set_reserved_encrypted(s->d, &cookie, revoke_replaced_number, s);
}

/* Writes the final state into the cookie after the handler has returned. Of several requests that replace the number
 * of a session, the first one writes its cookie, and the others must not overwrite that. A logout precedes them all. */
static void write_session_cookie(void *ctx)
{
    struct duda_session *s = ctx;
    s->writes_cookie = s->is_unsaved = false;
    if (!s->exists || !check_revocation(s))
        return;
    int e = set_session_cookie(s);
    if (e == -ESTALE)
        e = keep_login(s) ? set_session_cookie(s) : 0;
    s->is_unsaved = e == -EALREADY;
    if (e)
        duda_log_handler(s->d, MK_LOG_ERROR, "cannot save the session in its cookie: %s", strerror(-e));
}

static int defer_session_cookie(struct duda_session *s)
{
    if (s->writes_cookie)
        return 0;
    if (duda_response_has_started(s->d))
        return -EALREADY;
    s->writes_cookie = true;
    return duda_defer(s->d, write_session_cookie, s);
}

/* Until the client gets the new number, the old one must work: the handler may be cancelled before. */
static int replace_number(struct duda_session *s)
{
    if (!check_revocation(s))
        return -ENOENT;
    if (duda_response_has_started(s->d))
        return -EALREADY;
    if (!s->has_replaced) {
        memcpy(s->replaced, s->number, sizeof s->replaced);
        s->replaced_was_renewed = s->is_renewed;
        s->has_replaced = true;
    }
    return 0;
}

/* ---- Sessions in any store ---- */

static int load_session(struct duda_session *s)
{
    int e = 0;
    if (duda_session_has_no_store(s->d))
        return -ENOTSUP;
    if (duda_session_is_in_cookie(s->d)) {
        s->exists = load_cookie_session(s);
    } else {
        e = read_session_cookie(s);
        e = e ? e : duda_session_store_load(s);
        s->exists = !e;
    }
    s->exists = s->exists && duda_session_ttl_s(s) > 0;
    if (s->exists) {
        e = duda_session_user_check(s);
        s->exists = !e;
    }
    if (!s->exists)
        s->n = 0;
    return e == -ENOENT ? 0 : e;
}

/* Extends a session that the request does not change, but not on every request, because that would write to
 * the store each time. */
static int refresh_session(struct duda_session *s)
{
    if (!s->exists || duda_session_is_in_memory(s->d) || duda_response_has_started(s->d) ||
        session_now(s) - s->used < duda_session_write_interval_s(s->d->worker_ctx->session_config))
        return 0;
    if (duda_session_is_in_cookie(s->d))
        return defer_session_cookie(s);
    int e = duda_session_store_save(s);
    if (!e)
        duda_session_user_update(s, s->key);
    return e == -ENOENT ? 0 : e;
}

/* Returns the key of the session attached to this request. A session belongs to a service or to a share, and
 * error handlers may belong to another service than the handler. */
static const void *session_key(const struct duda_ctx *d)
{
    return d->owner->share ? (const void *)d->owner->share : d->owner;
}

/* Returns the session that this request has loaded from the store of this service; NULL if there is none. The
 * error handlers may have a new context, and that of the handler may have been freed. */
static struct duda_session *find_loaded_session(struct duda_ctx *d)
{
    struct duda_session *s = mk_request_attached(d->request, session_key(d));
    if (!s || s->store != duda_session_store_of(d))
        return NULL;
    s->d = d;
    return s;
}

static int get_session(struct duda_ctx *d, struct duda_session **out)
{
    struct duda_session *s = d->request ? find_loaded_session(d) : NULL;
    int e = d->request ? 0 : -EALREADY;
    if (s && s->is_unsaved && !duda_response_has_started(d))
        e = defer_session_cookie(s);
    if (!e && !s) {
        s = mk_request_alloc(d->request, sizeof *s);
        if (!s)
            return -ENOMEM;
        *s = (struct duda_session){.d = d, .store = duda_session_store_of(d)};
        e = load_session(s);
        if (!e)
            e = refresh_session(s);
        if (!e)
            e = mk_request_attach(d->request, session_key(d), s, NULL);
    }
    *out = s;
    return e;
}

static int assign_session_id(struct duda_session *s)
{
    unsigned char bits[DUDA_SESSION_ID_LEN / 2];
    struct duda_cookie_name name;
    struct mk_buf text = mk_buf_fixed(s->id, sizeof s->id);
    if (duda_response_has_started(s->d))
        return -EALREADY;
    if (duda_session_is_in_cookie(s->d)) {
        mk_random(s->number, sizeof s->number);
        return defer_session_cookie(s);
    }
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of((const char *)bits, sizeof bits));
    s->is_new = true;
    int e = duda_session_derive_key(s);
    return e ? e
             : duda_cookie_set_reserved(s->d, &(struct mk_cookie){.name = duda_reserved_cookie_name(
                                                                      s->d, DUDA_COOKIE_SESSION, &name),
                                                                  .value = mk_buf_str(&text)});
}

/* Limits sessions in a package's store; authenticated users are not counted. */
static bool may_create_session(const struct duda_session *s)
{
    struct duda_session_config *v = s->d->worker_ctx->session_config;
    struct mk_addr client;
    if (!v->creation_rate)
        return true;
    mk_addr_client_prefix(mk_request_client_addr(s->d->request), &client);
    return duda_session_rate_allow(v->creation_rate, &client,
                                   (uint64_t)session_now(s) / ((v->idle_ms + 999) / 1000), v->n_max);
}

static int create_session(struct duda_session *s)
{
    s->exists = true;
    s->is_renewed = false;
    s->began = session_now(s);
    s->n = 0;
    return assign_session_id(s);
}

static int save_session(struct duda_session *s)
{
    if (!duda_session_is_in_cookie(s->d))
        return duda_session_store_save(s);
    return check_revocation(s) ? defer_session_cookie(s) : -ENOENT;
}

/* Invalidates all copies of the session's ID. -ENOENT: another request has done so. */
static int delete_session(struct duda_session *s)
{
    if (!duda_session_is_in_cookie(s->d))
        return duda_session_store_delete(s);
    bool is_first = revoke_replaced_number(s);
    return revoke_number(s, s->number, s->is_renewed) && is_first ? 0 : -ENOENT;
}

/* ---- For the rest of Duda ---- */

int duda_session_open(struct duda_ctx *d, struct duda_session **out)
{
    int e = get_session(d, out);
    if (e && d->request)
        d->session_error =
            e; /* if the handler takes this for "logged out", result.c responds with an error */
    return e;
}

int duda_session_ensure(struct duda_session *s)
{
    return s->exists ? 0 : may_create_session(s) ? create_session(s) : -EDQUOT;
}

int duda_session_store_changes(struct duda_session *s)
{
    int e = save_session(s);
    return e == -ENOENT ? -ESTALE : e; /* another request has destroyed the session */
}

/* ---- Called by handlers ---- */

int duda_session_get(struct duda_ctx *d, const char *name, mk_str *value)
{
    struct duda_session *s;
    int e = duda_session_open(d, &s);
    *value = MK_STR_NULL;
    if (e)
        return e;
    const struct duda_session_pair *p = s->exists ? duda_session_find_pair(s, mk_str_from_c(name)) : NULL;
    if (!p)
        return -ENOENT;
    *value = p->value;
    return 0;
}

int duda_session_set(struct duda_ctx *d, const char *name, mk_str value)
{
    struct duda_session *s;
    int e = mk_str_starts(mk_str_from_c(name), MK_STR(DUDA_SESSION_OWN)) ? -EINVAL : get_session(d, &s);
    if (!e && value.p)
        e = duda_session_ensure(s);
    if (!e)
        e = duda_session_put_pair(s, mk_str_from_c(name), value);
    return e || !s->exists ? e : duda_session_store_changes(s);
}

int duda_session_regenerate(struct duda_ctx *d)
{
    struct duda_session *s;
    int e = get_session(d, &s);
    if (e)
        return e;
    bool existed = s->exists;
    char old_id[DUDA_SESSION_ID_LEN], old_key[DUDA_SESSION_ID_LEN];
    memcpy(old_id, s->id, sizeof old_id);
    memcpy(old_key, s->key, sizeof old_key);
    e = !existed ? -ENOENT : duda_session_is_in_cookie(d) ? replace_number(s) : delete_session(s);
    e = e == -ENOENT ? create_session(s) : e ? e : assign_session_id(s);
    s->is_renewed = true;
    e = e || !existed || duda_session_is_in_cookie(d) ? e : save_session(s);
    if (!e && existed) {
        duda_session_user_update(s, old_key);
        duda_session_flash_move(s, old_id);
    }
    return e;
}

int duda_session_destroy(struct duda_ctx *d)
{
    struct duda_cookie_name name;
    struct duda_session *s;
    int e = get_session(d, &s);
    if (e || !s->exists)
        return e;
    e = delete_session(s);
    duda_session_user_remove(s);
    s->exists = false;
    s->n = 0;
    const struct mk_cookie over = {.name = duda_reserved_cookie_name(d, DUDA_COOKIE_SESSION, &name),
                                   .max_age = -1};
    return e && e != -ENOENT ? e : duda_cookie_set_reserved(d, &over);
}

int duda_session_expires_at(struct duda_ctx *d, int64_t *seconds)
{
    struct duda_session *s;
    int e = duda_session_open(d, &s);
    bool exists = !e && s->exists;
    *seconds = exists ? s->began + (d->worker_ctx->session_config->life_ms + 999) / 1000 : 0;
    return e ? e : exists ? 0 : -ENOENT;
}

/* ---- Choice of the store ---- */

static void set_service_store(struct duda_worker_ctx *worker_ctx, const struct duda_session_store *store)
{
    struct duda_service_session_store *own = worker_ctx->own_stores;
    while (own && own->owner != worker_ctx->starts)
        own = own->next;
    if (!own) {
        own = mk_mem_zalloc(1, sizeof *own);
        if (!own) {
            mk_worker_log(worker_ctx->worker, MK_LOG_ERROR,
                          "out of memory for the session store of a service");
            return;
        }
        *own = (struct duda_service_session_store){worker_ctx->own_stores, worker_ctx->starts, store};
        worker_ctx->own_stores = own;
    }
    own->store = store;
}

void duda_session_set_store(struct mk_worker *worker, const struct duda_session_store *store)
{
    struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    if (worker_ctx && worker_ctx->starts)
        set_service_store(worker_ctx, store);
    else if (worker_ctx)
        worker_ctx->store = store;
}

mk_str duda_session_store_name(struct mk_worker *worker)
{
    const struct duda_worker_ctx *worker_ctx = duda_worker_ctx(worker);
    bool is_named = worker_ctx && worker_ctx->session_config->store == DUDA_SESSION_BACKEND_STORE;
    return is_named ? worker_ctx->session_config->store_name : MK_STR_NULL;
}
