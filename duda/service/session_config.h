/* SPDX-License-Identifier: Apache-2.0 */
/* What signs and seals: settings of [SESSIONS], the keys, and the object that uses them. */
#ifndef DUDA_SERVICE_SESSION_CONFIG_H
#define DUDA_SERVICE_SESSION_CONFIG_H

#include "seal/cookie_crypto.h"
#include "text/revoked_sessions.h"
#include "text/session_rate.h"
#include "text/session_shm.h"

enum { DUDA_SESSION_KEYS_MAX = 8 };

enum duda_session_backend {
    DUDA_SESSION_BACKEND_MEMORY,
    DUDA_SESSION_BACKEND_COOKIE,
    DUDA_SESSION_BACKEND_STORE
};

/* What one configuration has for visitors. */
struct duda_session_config {
    mk_str store_name; /* `memory`, `cookie`, or that of a store which a package brings */
    enum duda_session_backend store;
    uint32_t idle_ms, life_ms;
    uint64_t n_max;
    mk_str key_file;
    const struct duda_cookie_crypto *seal; /* NULL: not loaded */
    bool has_secret; /* keys were configured: other machines, and the next start, have them */
    size_t n_keys;   /* the first one signs and seals */
    unsigned char keys[DUDA_SESSION_KEYS_MAX][DUDA_COOKIE_CRYPTO_KEY];
    unsigned char own_key[DUDA_COOKIE_CRYPTO_KEY]; /* of this server, as long as its master lives */
    struct duda_session_shm vault;
    struct duda_revoked_sessions *ended; /* sealed sessions; NULL: they are not in cookies */
    struct duda_session_rate *begun;     /* sessions in a store; NULL: they are not in one */
};

extern const struct mk_conf_table duda_session_config_table;

/* NULL: something is wrong, which has been reported. */
struct duda_session_config *duda_session_config_load(struct mk_config *config);
/* Cookies are to be signed or sealed: loads what does that. In the master: a sandbox may refuse it later.
 * False: there is no OpenSSL. */
bool duda_session_config_load_crypto(struct duda_session_config *session_config);

#endif
