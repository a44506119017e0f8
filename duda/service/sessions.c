/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: what is kept of a browser between its requests. */
#include <errno.h>

#include "service/cookies.h"
#include "service/home.h"
#include "service/keys.h"
#include "service/session_store.h"

static const char key; /* of what is attached to the request */

static int64_t now_of(const struct duda_session *s)
{
    return mk_request_time(s->d->request);
}

/* ---- The session of a request ---- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Eight at once: in the highest bit of each byte of a difference is whether it reaches the bound. */
static bool are_hex(const char *eight)
{
    uint64_t x;
    memcpy(&x, eight, sizeof x);
    uint64_t top = EACH(0x80), high = x | top;
    uint64_t digits = (high - EACH('0')) & ~(high - EACH('9' + 1));
    uint64_t letters = (high - EACH('a')) & ~(high - EACH('f' + 1));
    return ((digits | letters) & ~x & top) == top;
}

/* 0, -ENOMEM, or -ENOENT: the client has sent none. */
static int read_id(struct duda_session *s)
{
    struct duda_cookie_name name;
    mk_str text = duda_cookie(s->d, duda_cookies_name(s->d, DUDA_COOKIE_SESSION, &name));
    if (text.len != sizeof s->id)
        return -ENOENT;
    memcpy(s->id, text.p, sizeof s->id);
    for (size_t i = 0; i < sizeof s->id; i += 8)
        if (!are_hex(s->id + i))
            return -ENOENT;
    return duda_session_bind(s);
}

/* ---- In the cookie ---- */

/* Until no copy of the cookie would be taken any more: each of them says when it was used last. */
static void end_number(const struct duda_session *s)
{
    const struct duda_visits *v = s->d->home->visits;
    struct mk_peer client;
    mk_peer_client(mk_request_address(s->d->request), &client);
    duda_ended_add(v->ended, s->number, &(struct duda_ended_visitor){&client, s->is_renewed}, now_of(s),
                   now_of(s) + (v->idle_ms + 999) / 1000 + duda_session_slack(v));
}

static bool is_ended(const struct duda_session *s)
{
    return duda_ended_has(s->d->home->visits->ended, s->number, now_of(s));
}

static bool is_idle(const struct duda_session *s)
{
    const struct duda_visits *v = s->d->home->visits;
    return s->used + (v->idle_ms + 999) / 1000 + duda_session_slack(v) <= now_of(s);
}

static bool load_from_cookie(struct duda_session *s)
{
    struct duda_cookie_name name;
    mk_str data = duda_cookie_sealed(s->d, duda_cookies_name(s->d, DUDA_COOKIE_SESSION, &name));
    if (data.len < sizeof s->number)
        return false;
    memcpy(s->number, data.p, sizeof s->number);
    return duda_session_decode(s, mk_str_skip(data, sizeof s->number)) && !is_idle(s) && !is_ended(s);
}

/* The last word about it goes into the cookie, when the handler has returned. */
static void write_cookie(void *ctx)
{
    struct duda_session *s = ctx;
    char room[DUDA_SESSION_MAX];
    struct duda_cookie_name name;
    struct mk_buf data = mk_buf_fixed(room, sizeof room);
    s->writes_cookie = false;
    if (!s->exists || is_ended(s)) /* by another request, which has told the client so */
        return;
    s->used = now_of(s);
    mk_buf_add(&data, mk_str_of((const char *)s->number, sizeof s->number));
    duda_session_encode(s, &data);
    const struct duda_cookie cookie = {.name = duda_cookies_name(s->d, DUDA_COOKIE_SESSION, &name),
                                       .value = mk_buf_str(&data)};
    int e = data.failed ? -E2BIG : duda_cookies_set_sealed(s->d, &cookie);
    if (e)
        mk_request_log(s->d->request, MK_LOG_ERROR, "the session could not be kept: %s", strerror(-e));
}

static int later(struct duda_session *s)
{
    if (s->writes_cookie)
        return 0;
    if (s->d->streams)
        return -EALREADY;
    s->writes_cookie = true;
    return duda_defer(s->d, write_cookie, s);
}

/* ---- In any place ---- */

static int find(struct duda_session *s)
{
    int e = 0;
    if (duda_session_is_nowhere(s->d))
        return -ENOTSUP;
    if (duda_session_is_in_cookie(s->d)) {
        s->exists = load_from_cookie(s);
    } else {
        e = read_id(s);
        e = e ? e : duda_session_load(s);
        s->exists = !e;
    }
    s->exists = s->exists && duda_session_seconds_left(s) > 0;
    if (!s->exists)
        s->n = 0;
    return e == -ENOENT ? 0 : e;
}

/* Requests alone keep it alive, too: in good time, not with each of them. */
static int touch(struct duda_session *s)
{
    if (!s->exists || duda_session_is_in_vault(s->d) || s->d->streams ||
        now_of(s) - s->used < duda_session_slack(s->d->home->visits))
        return 0;
    if (duda_session_is_in_cookie(s->d))
        return later(s);
    int e = duda_session_save(s);
    return e == -ENOENT ? 0 : e;
}

static int get(struct duda *d, struct duda_session **out)
{
    struct duda_session *s = d->request ? mk_request_attached(d->request, &key) : NULL;
    int e = d->request ? 0 : -EALREADY;
    if (!e && !s) {
        s = mk_request_alloc(d->request, sizeof *s);
        if (!s)
            return -ENOMEM;
        *s = (struct duda_session){.d = d};
        e = find(s);
        if (!e)
            e = touch(s);
        if (!e)
            e = mk_request_attach(d->request, &key, s, NULL);
    }
    *out = s;
    return e;
}

static int give_id(struct duda_session *s)
{
    unsigned char bits[DUDA_SESSION_ID / 2];
    struct duda_cookie_name name;
    struct mk_buf text = mk_buf_fixed(s->id, sizeof s->id);
    if (s->d->streams)
        return -EALREADY;
    if (duda_session_is_in_cookie(s->d)) {
        mk_random(s->number, sizeof s->number);
        return later(s);
    }
    mk_random(bits, sizeof bits);
    mk_hex_encode(&text, mk_str_of((const char *)bits, sizeof bits));
    s->is_new = true;
    int e = duda_session_bind(s);
    return e ? e
             : duda_cookies_set(
                   s->d, &(struct duda_cookie){.name = duda_cookies_name(s->d, DUDA_COOKIE_SESSION, &name),
                                               .value = mk_buf_str(&text)});
}

/* Of those that a package keeps; visitors who log in are not counted. */
static bool may_begin(const struct duda_session *s)
{
    struct duda_visits *v = s->d->home->visits;
    struct mk_peer client;
    if (!v->begun)
        return true;
    mk_peer_client(mk_request_address(s->d->request), &client);
    return duda_begun_add(v->begun, &client, (uint64_t)now_of(s) / ((v->idle_ms + 999) / 1000), v->n_max);
}

static int begin(struct duda_session *s)
{
    s->exists = true;
    s->is_renewed = false;
    s->began = now_of(s);
    s->n = 0;
    return give_id(s);
}

static int save(struct duda_session *s)
{
    if (!duda_session_is_in_cookie(s->d))
        return duda_session_save(s);
    if (!is_ended(s))
        return later(s);
    s->exists = false;
    s->n = 0;
    return -ENOENT;
}

/* No copy of its number is worth anything any more. -ENOENT: another request has done that. */
static int drop(struct duda_session *s)
{
    if (!duda_session_is_in_cookie(s->d))
        return duda_session_drop(s);
    bool was_ended = is_ended(s);
    end_number(s);
    return was_ended ? -ENOENT : 0;
}

/* ---- What handlers ask ---- */

mk_str duda_session_get(struct duda *d, const char *name)
{
    struct duda_session *s;
    int e = get(d, &s);
    if (e && d->request)
        d->session_error = e; /* absent would mean "logged out": see result.c */
    if (e || !s->exists)
        return MK_ABSENT;
    const struct duda_session_pair *p = duda_session_pair_of(s, mk_str_from_c(name));
    return p ? p->value : MK_ABSENT;
}

int duda_session_set(struct duda *d, const char *name, mk_str value)
{
    struct duda_session *s;
    int e = get(d, &s);
    if (!e && !s->exists)
        e = !value.p ? 0 : may_begin(s) ? begin(s) : -EDQUOT;
    if (!e)
        e = duda_session_change(s, mk_str_from_c(name), value);
    if (e || !s->exists)
        return e;
    e = save(s);
    return e == -ENOENT ? -ESTALE : e; /* another request has ended it */
}

int duda_session_renew(struct duda *d)
{
    struct duda_session *s;
    int e = get(d, &s);
    if (e)
        return e;
    bool existed = s->exists;
    e = existed ? drop(s) : -ENOENT;
    e = e == -ENOENT ? begin(s) : e ? e : give_id(s);
    s->is_renewed = true;
    return e || !existed ? e : save(s);
}

int duda_session_end(struct duda *d)
{
    struct duda_cookie_name name;
    struct duda_session *s;
    int e = get(d, &s);
    if (e || !s->exists)
        return e;
    e = drop(s);
    s->exists = false;
    s->n = 0;
    const struct duda_cookie over = {.name = duda_cookies_name(d, DUDA_COOKIE_SESSION, &name), .max_age = -1};
    return e && e != -ENOENT ? e : duda_cookies_set(d, &over);
}

/* ---- Which store ---- */

static void use_own(struct duda_home *home, const struct duda_session_store *store)
{
    struct duda_own_store *own = home->own_stores;
    while (own && own->owner != home->starts)
        own = own->next;
    if (!own) {
        own = mk_mem_zalloc(1, sizeof *own);
        if (!own) {
            mk_worker_log(home->worker, MK_LOG_ERROR, "no memory for the store of sessions of a service");
            return;
        }
        *own = (struct duda_own_store){home->own_stores, home->starts, store};
        home->own_stores = own;
    }
    own->store = store;
}

void duda_session_use(struct mk_worker *worker, const struct duda_session_store *store)
{
    struct duda_home *home = duda_home(worker);
    if (home && home->starts)
        use_own(home, store);
    else if (home)
        home->store = store;
}

mk_str duda_session_place(struct mk_worker *worker)
{
    const struct duda_home *home = duda_home(worker);
    bool is_named = home && home->visits->store == DUDA_STORE_NAMED;
    return is_named ? home->visits->store_name : MK_ABSENT;
}
