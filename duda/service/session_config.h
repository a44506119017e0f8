/* SPDX-License-Identifier: Apache-2.0 */
/* Signing and encryption of cookies: settings of [SESSIONS], keys, and the loaded crypto object. */
#ifndef DUDA_SERVICE_SESSION_CONFIG_H
#define DUDA_SERVICE_SESSION_CONFIG_H

#include "seal/cookie_crypto.h"
#include "service/revoked_sessions.h"
#include "service/session_rate.h"
#include "service/session_shm.h"

enum { DUDA_SESSION_KEYS_MAX = 8 };

enum duda_session_backend {
    DUDA_SESSION_BACKEND_MEMORY,
    DUDA_SESSION_BACKEND_COOKIE,
    DUDA_SESSION_BACKEND_STORE
};

/* Session settings of one configuration. */
struct duda_session_config {
    mk_str store_name; /* `memory`, `cookie`, or the name of a store that a package provides */
    enum duda_session_backend store;
    uint32_t idle_ms, life_ms;
    uint64_t n_max;
    mk_str key_file;
    const struct duda_cookie_crypto *seal; /* NULL: not loaded */
    bool has_secret; /* keys are configured, so other machines and the next start share them */
    size_t n_keys;   /* the first key signs and encrypts */
    unsigned char keys[DUDA_SESSION_KEYS_MAX][DUDA_COOKIE_CRYPTO_KEY];
    unsigned char own_key
        [DUDA_COOKIE_CRYPTO_KEY]; /* key of this server, valid as long as its master runs; under `monkey
                                                      * run`, key of the project */
    struct duda_session_shm shm;
    struct duda_revoked_sessions *ended;     /* ended sessions, if sessions are in cookies; else NULL */
    struct duda_session_rate *creation_rate; /* rate of new sessions, if sessions are in a store; else NULL */
};

extern const struct mk_conf_table duda_session_config_table;

/* On failure, reports the error and returns NULL. */
struct duda_session_config *duda_session_config_load(struct mk_config *config);
/* Loads the crypto object that signs and encrypts cookies. Called in the master, because a sandbox may forbid
 * it later. Returns false if OpenSSL is missing. */
bool duda_session_config_load_crypto(struct duda_session_config *session_config);

#endif
