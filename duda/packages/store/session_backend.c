/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps sessions in a store, and the secret that authenticates them. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/session.h>
#include <errno.h>
#include <monkey/text.h>

#include "store.h"

static struct duda_store *session_store(struct duda_ctx *d)
{
    return store_worker_get(duda_worker(d))->sessions;
}

/* All services share this table, because the MAC binds a session ID to one service. */
static mk_str session_key(struct store_key_buf *buf, mk_str id)
{
    return store_key_format(buf, STORE_KEY_SESSION, MK_STR(""), mk_str_first(id, DUDA_SESSION_ID_LEN));
}

static int load_session(struct duda_ctx *d, mk_str id, mk_str *out)
{
    struct store_key_buf buf;
    return session_store(d)->ops->get(d, session_store(d), session_key(&buf, id), out);
}

static int save_session(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds)
{
    struct store_key_buf buf;
    return session_store(d)->ops->set(d, session_store(d), session_key(&buf, id), data,
                                      (uint64_t)seconds * 1000);
}

static int delete_session(struct duda_ctx *d, mk_str id)
{
    struct store_key_buf buf;
    return session_store(d)->ops->delete_if(d, session_store(d), session_key(&buf, id), MK_STR_NULL);
}

static int replace_session(struct duda_ctx *d, mk_str id, mk_str data, uint32_t seconds)
{
    struct store_key_buf buf;
    return session_store(d)->ops->replace(d, session_store(d), session_key(&buf, id), data,
                                          (uint64_t)seconds * 1000);
}

/* ---- The secret ---- */

/* Gets the secret from the store; the first worker that needs it creates it. Another handler may do the same
 * while this one waits. */
static int load_secret(struct duda_ctx *d, struct store_worker *all)
{
    struct store_key_buf buf;
    unsigned char own[DUDA_SESSION_SECRET_SIZE];
    mk_str key = store_key_format(&buf, STORE_KEY_SESSION, MK_STR(""), MK_STR("secret")), found;
    int e = session_store(d)->ops->get(d, session_store(d), key, &found);
    if (e == -ENOENT) {
        mk_random(own, sizeof own);
        found = mk_str_of((const char *)(all->has_secret ? all->secret : own), sizeof own);
        found = duda_strdup(d, found);
        e = found.p ? session_store(d)->ops->add(d, session_store(d), key, found, 0) : -ENOMEM;
    }
    if (e == -EEXIST)
        e = session_store(d)->ops->get(d, session_store(d), key, &found);
    if (e)
        return e;
    if (found.len != sizeof all->secret)
        return -EPROTO;
    memcpy(all->secret, found.p, sizeof all->secret);
    all->has_secret = true;
    return 0;
}

static int session_secret(struct duda_ctx *d, bool is_fresh, unsigned char secret[DUDA_SESSION_SECRET_SIZE])
{
    struct store_worker *all = store_worker_get(duda_worker(d));
    int e = all->has_secret && !is_fresh ? 0 : load_secret(d, all);
    if (!e)
        memcpy(secret, all->secret, sizeof all->secret);
    return e;
}

void store_sessions_enable(struct store_worker *all)
{
    static const struct duda_session_store functions = {.load = load_session,
                                                        .save = save_session,
                                                        .destroy = delete_session,
                                                        .replace = replace_session,
                                                        .key = session_secret};
    duda_session_set_store(all->worker, &functions);
}
