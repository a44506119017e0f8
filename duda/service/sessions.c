/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: what is kept of a browser between its requests. */
#include <endian.h>
#include <errno.h>

#include "service/cookies.h"
#include "service/home.h"
#include "service/keys.h"

enum { TIMES = 16, PAIR_HEAD = 4, PAIRS_FIRST = 4, PAIRS_MAX = 64, NAME_MAX_LEN = 128 };

static const char key; /* of what is attached to the request */

struct pair {
    mk_str name, value;
};

struct session {
    struct duda *d;
    bool exists, writes_cookie;
    bool is_new;              /* its number was made in this request, and the store does not know it */
    char id[DUDA_SESSION_ID]; /* as the cookie and the stores have it */
    int64_t began, used;
    struct pair *pairs;
    size_t n, room;
};

static const char *cookie_name(const struct duda *d)
{
    return duda_cookies_name(d, "session", "__Host-session");
}

static int64_t seconds(uint32_t ms)
{
    return (ms + 999) / 1000;
}

/* ---- As bytes ---- */

static void add_number(struct mk_buf *out, uint64_t n, int bytes)
{
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        mk_buf_add_char(out, (char)(n >> shift));
}

static uint64_t take_number(mk_str *from, size_t bytes)
{
    unsigned char room[8] = {0};
    uint64_t n;
    memcpy(room + sizeof room - bytes, from->p, bytes);
    memcpy(&n, room, sizeof n);
    *from = mk_str_skip(*from, bytes);
    return be64toh(n);
}

static void encode(const struct session *s, struct mk_buf *out)
{
    add_number(out, (uint64_t)s->began, 8);
    add_number(out, (uint64_t)s->used, 8);
    for (size_t i = 0; i < s->n; i++) {
        add_number(out, s->pairs[i].name.len, 2);
        add_number(out, s->pairs[i].value.len, 2);
        mk_buf_add(out, s->pairs[i].name);
        mk_buf_add(out, s->pairs[i].value);
    }
}

/* A copy that lives as long as the request, with a NUL behind it. */
static mk_str keep(const struct session *s, mk_str text)
{
    char *p = mk_request_alloc(s->d->request, text.len + 1);
    if (!p)
        return MK_ABSENT;
    if (text.len)
        memcpy(p, text.p, text.len);
    p[text.len] = '\0';
    return mk_str_of(p, text.len);
}

static bool add_pair(struct session *s, struct pair p)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : PAIRS_FIRST;
        struct pair *more = mk_request_alloc(s->d->request, room * sizeof *more);
        if (!more)
            return false;
        if (s->n)
            memcpy(more, s->pairs, s->n * sizeof *more);
        s->pairs = more;
        s->room = room;
    }
    s->pairs[s->n++] = p;
    return true;
}

static bool decode(struct session *s, mk_str data)
{
    if (data.len < TIMES)
        return false;
    s->began = (int64_t)take_number(&data, 8);
    s->used = (int64_t)take_number(&data, 8);
    while (data.len >= PAIR_HEAD && s->n < PAIRS_MAX) {
        size_t name = (size_t)take_number(&data, 2), value = (size_t)take_number(&data, 2);
        if (name + value > data.len)
            return false;
        struct pair p = {keep(s, mk_str_first(data, name)),
                         keep(s, mk_str_first(mk_str_skip(data, name), value))};
        if (!p.name.p || !p.value.p || !add_pair(s, p))
            return false;
        data = mk_str_skip(data, name + value);
    }
    return data.len == 0;
}

/* ---- Stores ---- */

static mk_str id_text(const struct session *s)
{
    return mk_str_of(s->id, sizeof s->id);
}

/* As the vault has it. */
struct vault_id {
    unsigned char bytes[DUDA_VAULT_ID];
};

static struct vault_id vault_id(const struct session *s)
{
    struct vault_id id;
    for (size_t i = 0; i < sizeof id.bytes; i++)
        id.bytes[i] = (unsigned char)(mk_char_hex(s->id[2 * i]) * 16 + mk_char_hex(s->id[2 * i + 1]));
    return id;
}

static bool in_cookie(const struct duda *d)
{
    return !d->home->store && d->home->visits->store == DUDA_STORE_COOKIE;
}

static int64_t now_of(const struct session *s)
{
    return mk_request_time(s->d->request);
}

/* Nobody has brought the store of that name, though the configuration has one. */
static bool is_nowhere(const struct duda *d)
{
    return !d->home->store && d->home->visits->store == DUDA_STORE_NAMED;
}

/* How long the store has to keep it: 0, it is over. */
static uint32_t seconds_left(const struct session *s)
{
    const struct duda_visits *v = s->d->home->visits;
    int64_t left = s->began + seconds(v->life_ms) - now_of(s), idle = seconds(v->idle_ms);
    return left <= 0 ? 0 : (uint32_t)(left < idle ? left : idle);
}

static int save_in_vault(const struct session *s, mk_str data)
{
    const struct duda_vault *vault = &s->d->home->visits->vault;
    struct vault_id id = vault_id(s);
    if (s->is_new)
        return duda_vault_save(vault, id.bytes, data, s->used, seconds_left(s)) ? 0 : -EBUSY;
    return duda_vault_replace(vault, id.bytes, data, s->used, seconds_left(s)) ? 0 : -ENOENT;
}

static int save_in_store(const struct session *s, mk_str data)
{
    const struct duda_session_store *store = s->d->home->store;
    return (s->is_new || !store->replace ? store->save : store->replace)(s->d, id_text(s), data,
                                                                         seconds_left(s));
}

/* A session that another request has ended or renewed meanwhile does not come back. */
static int store_save(struct session *s)
{
    char room[DUDA_SESSION_MAX];
    struct mk_buf data = mk_buf_fixed(room, sizeof room);
    s->used = now_of(s);
    encode(s, &data);
    if (data.failed)
        return -E2BIG;
    int e = s->d->home->store ? save_in_store(s, mk_buf_str(&data)) : save_in_vault(s, mk_buf_str(&data));
    if (!e)
        s->is_new = false;
    if (e == -ENOENT) {
        s->exists = false;
        s->n = 0;
    }
    return e;
}

static int load_from_vault(const struct session *s, mk_str *out)
{
    char room[DUDA_SESSION_MAX];
    struct mk_buf data = mk_buf_fixed(room, sizeof room);
    const struct duda_visits *v = s->d->home->visits;
    struct vault_id id = vault_id(s);
    if (!duda_vault_load(&v->vault, id.bytes, now_of(s), (uint32_t)seconds(v->idle_ms), &data))
        return -ENOENT;
    *out = duda_copy(s->d, mk_buf_str(&data));
    return out->p ? 0 : -ENOMEM;
}

static int store_load(struct session *s, mk_str *out)
{
    struct duda_home *home = s->d->home;
    return home->store ? home->store->load(s->d, id_text(s), out) : load_from_vault(s, out);
}

static int store_drop(struct session *s)
{
    struct duda_home *home = s->d->home;
    if (home->store)
        return home->store->drop(s->d, id_text(s));
    struct vault_id id = vault_id(s);
    return duda_vault_drop(&home->visits->vault, id.bytes) ? 0 : -ENOENT;
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

static bool read_id(struct session *s)
{
    mk_str text = duda_cookie(s->d, cookie_name(s->d));
    if (text.len != sizeof s->id)
        return false;
    memcpy(s->id, text.p, sizeof s->id);
    for (size_t i = 0; i < sizeof s->id; i += 8)
        if (!are_hex(s->id + i))
            return false;
    return true;
}

static bool is_over(const struct session *s)
{
    const struct duda_visits *v = s->d->home->visits;
    return seconds_left(s) == 0 || (in_cookie(s->d) && s->used + seconds(v->idle_ms) <= now_of(s));
}

static int find(struct session *s)
{
    mk_str data = MK_ABSENT;
    int e = 0;
    if (is_nowhere(s->d))
        return -ENOTSUP;
    if (in_cookie(s->d))
        data = duda_cookie_sealed(s->d, cookie_name(s->d));
    else if (read_id(s))
        e = store_load(s, &data);
    if (e && e != -ENOENT)
        return e;
    s->exists = data.p && decode(s, data) && !is_over(s);
    if (!s->exists)
        s->n = 0;
    return 0;
}

/* The last word about it goes into the cookie, when the handler has returned. */
static void write_cookie(void *ctx)
{
    struct session *s = ctx;
    char room[DUDA_SESSION_MAX];
    struct mk_buf data = mk_buf_fixed(room, sizeof room);
    s->writes_cookie = false;
    if (!s->exists)
        return;
    s->used = now_of(s);
    encode(s, &data);
    int e = data.failed ? -E2BIG
                        : duda_cookie_set_sealed(s->d, &(struct duda_cookie){.name = cookie_name(s->d),
                                                                             .value = mk_buf_str(&data)});
    if (e)
        mk_request_log(s->d->request, MK_LOG_ERROR, "the session could not be kept: %s", strerror(-e));
}

static int later(struct session *s)
{
    if (s->writes_cookie)
        return 0;
    if (s->d->streams)
        return -EALREADY;
    s->writes_cookie = true;
    return duda_defer(s->d, write_cookie, s);
}

/* Requests alone keep it alive, too: in good time, not with each of them. */
static int touch(struct session *s)
{
    const struct duda_visits *v = s->d->home->visits;
    if (!s->exists || now_of(s) - s->used < seconds(v->idle_ms) / 4 || s->d->streams)
        return 0;
    if (in_cookie(s->d))
        return later(s);
    int e = store_save(s);
    return e == -ENOENT ? 0 : e;
}

static int get(struct duda *d, struct session **out)
{
    struct session *s = d->request ? mk_request_attached(d->request, &key) : NULL;
    int e = d->request ? 0 : -EALREADY;
    if (!e && !s) {
        s = mk_request_alloc(d->request, sizeof *s);
        if (!s)
            return -ENOMEM;
        *s = (struct session){.d = d};
        e = find(s);
        if (!e)
            e = touch(s);
        if (!e)
            e = mk_request_attach(d->request, &key, s, NULL);
    }
    *out = s;
    return e;
}

static int give_id(struct session *s)
{
    struct vault_id id;
    struct mk_buf text = mk_buf_fixed(s->id, sizeof s->id);
    if (s->d->streams)
        return -EALREADY;
    mk_random(id.bytes, sizeof id.bytes);
    mk_hex_encode(&text, mk_str_of((const char *)id.bytes, sizeof id.bytes));
    s->is_new = true;
    return duda_cookie_set(s->d, &(struct duda_cookie){.name = cookie_name(s->d), .value = id_text(s)});
}

static int begin(struct session *s)
{
    s->exists = true;
    s->began = now_of(s);
    s->n = 0;
    return in_cookie(s->d) ? 0 : give_id(s);
}

static int save(struct session *s)
{
    return in_cookie(s->d) ? later(s) : store_save(s);
}

/* ---- What handlers ask ---- */

static struct pair *pair_of(struct session *s, mk_str name)
{
    for (size_t i = 0; i < s->n; i++)
        if (mk_str_eq(s->pairs[i].name, name))
            return &s->pairs[i];
    return NULL;
}

mk_str duda_session_get(struct duda *d, const char *name)
{
    struct session *s;
    int e = get(d, &s);
    if (e && d->request)
        d->session_error = e; /* absent would mean "logged out": see result.c */
    if (e || !s->exists)
        return MK_ABSENT;
    const struct pair *p = pair_of(s, mk_str_from_c(name));
    return p ? p->value : MK_ABSENT;
}

static size_t size_of(const struct session *s)
{
    size_t n = TIMES;
    for (size_t i = 0; i < s->n; i++)
        n += PAIR_HEAD + s->pairs[i].name.len + s->pairs[i].value.len;
    return n;
}

static int change(struct session *s, mk_str name, mk_str value)
{
    struct pair *p = pair_of(s, name);
    if (!value.p) {
        if (p)
            *p = s->pairs[--s->n];
        return 0;
    }
    size_t old = p ? PAIR_HEAD + p->name.len + p->value.len : 0;
    if ((!p && s->n == PAIRS_MAX) || name.len > NAME_MAX_LEN || value.len > DUDA_SESSION_MAX ||
        size_of(s) - old + PAIR_HEAD + name.len + value.len > DUDA_SESSION_MAX)
        return -E2BIG;
    struct pair kept = {keep(s, name), keep(s, value)};
    if (!kept.name.p || !kept.value.p)
        return -ENOMEM;
    if (!p)
        return add_pair(s, kept) ? 0 : -ENOMEM;
    *p = kept;
    return 0;
}

int duda_session_set(struct duda *d, const char *name, mk_str value)
{
    struct session *s;
    int e = get(d, &s);
    if (!e && !s->exists)
        e = value.p ? begin(s) : 0;
    if (!e)
        e = change(s, mk_str_from_c(name), value);
    if (e || !s->exists)
        return e;
    e = save(s);
    return e == -ENOENT ? -ESTALE : e; /* another request has ended it */
}

int duda_session_renew(struct duda *d)
{
    struct session *s;
    int e = get(d, &s);
    if (e || !s->exists)
        return e ? e : begin(s);
    if (in_cookie(d))
        return later(s);
    e = store_drop(s);
    if (e == -ENOENT) { /* another request has ended it */
        e = begin(s);
        return e ? e : store_save(s);
    }
    if (!e)
        e = give_id(s);
    return e ? e : store_save(s);
}

int duda_session_end(struct duda *d)
{
    struct session *s;
    int e = get(d, &s);
    if (e || !s->exists)
        return e;
    s->exists = false;
    s->n = 0;
    if (!in_cookie(d))
        e = store_drop(s);
    return e && e != -ENOENT ? e : duda_cookie_forget(d, cookie_name(d));
}

void duda_session_use(struct mk_worker *worker, const struct duda_session_store *store)
{
    struct duda_home *home = duda_home(worker);
    if (home)
        home->store = store;
}

mk_str duda_session_place(struct mk_worker *worker)
{
    const struct duda_home *home = duda_home(worker);
    bool is_named = home && home->visits->store == DUDA_STORE_NAMED;
    return is_named ? home->visits->store_name : MK_ABSENT;
}
