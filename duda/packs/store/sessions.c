/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in a store, and the secret that proves them. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/visitor.h>
#include <errno.h>
#include <monkey/text.h>

#include "stores.h"

static struct duda_store *place(const struct duda *d)
{
    return stores_of(duda_worker(d))->sessions;
}

/* Of all services: a number belongs to one of them, as its proof says. */
static mk_str key_of(struct stores_key *room, mk_str id)
{
    return stores_key(room, STORES_SESSIONS, MK_STR(""), mk_str_first(id, DUDA_SESSION_ID));
}

static int load(struct duda *d, mk_str id, mk_str *out)
{
    struct stores_key room;
    return place(d)->ops->get(d, place(d), key_of(&room, id), out);
}

static int save(struct duda *d, mk_str id, mk_str data, uint32_t seconds)
{
    struct stores_key room;
    return place(d)->ops->put(d, place(d), key_of(&room, id), data, (uint64_t)seconds * 1000);
}

static int drop(struct duda *d, mk_str id)
{
    struct stores_key room;
    return place(d)->ops->remove(d, place(d), key_of(&room, id), MK_ABSENT);
}

static int replace(struct duda *d, mk_str id, mk_str data, uint32_t seconds)
{
    struct stores_key room;
    return place(d)->ops->replace(d, place(d), key_of(&room, id), data, (uint64_t)seconds * 1000);
}

/* ---- The secret ---- */

/* The one in the store, which the first worker that needs it has put there. Another handler may do the same while this
 * one waits. */
static int find_secret(struct duda *d, struct stores *all)
{
    struct stores_key room;
    unsigned char own[DUDA_SESSION_SECRET];
    mk_str key = stores_key(&room, STORES_SESSIONS, MK_STR(""), MK_STR("secret")), found;
    int e = place(d)->ops->get(d, place(d), key, &found);
    if (e == -ENOENT) {
        mk_random(own, sizeof own);
        found = mk_str_of((const char *)(all->has_secret ? all->secret : own), sizeof own);
        found = duda_copy(d, found);
        e = found.p ? place(d)->ops->add(d, place(d), key, found, 0) : -ENOMEM;
    }
    if (e == -EEXIST)
        e = place(d)->ops->get(d, place(d), key, &found);
    if (e)
        return e;
    if (found.len != sizeof all->secret)
        return -EPROTO;
    memcpy(all->secret, found.p, sizeof all->secret);
    all->has_secret = true;
    return 0;
}

static int key(struct duda *d, bool is_fresh, unsigned char secret[DUDA_SESSION_SECRET])
{
    struct stores *all = stores_of(duda_worker(d));
    int e = all->has_secret && !is_fresh ? 0 : find_secret(d, all);
    if (!e)
        memcpy(secret, all->secret, sizeof all->secret);
    return e;
}

void store_sessions_use(struct stores *all)
{
    static const struct duda_session_store functions = {
        .load = load, .save = save, .drop = drop, .replace = replace, .key = key};
    duda_session_use(all->worker, &functions);
}
