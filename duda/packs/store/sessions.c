/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in a store. */
#include <duda/asked.h>
#include <duda/visitor.h>
#include <errno.h>

#include "stores.h"

#define PREFIX "session/"

static struct duda_store *place(const struct duda *d)
{
    return stores_of(duda_worker(d))->sessions;
}

/* In every request of a session: cheap. */
struct key {
    char room[sizeof PREFIX - 1 + DUDA_SESSION_ID];
};

static mk_str key_of(struct key *key, mk_str id)
{
    size_t n = id.len < DUDA_SESSION_ID ? id.len : DUDA_SESSION_ID;
    memcpy(key->room, PREFIX, sizeof PREFIX - 1);
    memcpy(key->room + sizeof PREFIX - 1, id.p, n);
    return mk_str_of(key->room, sizeof PREFIX - 1 + n);
}

static int load(struct duda *d, mk_str id, mk_str *out)
{
    struct key key;
    return duda_store_get(d, place(d), key_of(&key, id), out);
}

static int save(struct duda *d, mk_str id, mk_str data, uint32_t seconds)
{
    struct key key;
    return duda_store_put(d, place(d), key_of(&key, id), data, (uint64_t)seconds * 1000);
}

/* Says whether it was there, which duda_store_remove() does not. */
static int drop(struct duda *d, mk_str id)
{
    struct key key;
    return place(d)->ops->remove(d, place(d), key_of(&key, id), MK_ABSENT);
}

static int replace(struct duda *d, mk_str id, mk_str data, uint32_t seconds)
{
    struct key key;
    return duda_store_replace(d, place(d), key_of(&key, id), data, (uint64_t)seconds * 1000);
}

void store_sessions_use(struct stores *all)
{
    static const struct duda_session_store functions = {load, save, drop, replace};
    duda_session_use(all->worker, &functions);
}
