/* SPDX-License-Identifier: Apache-2.0 */
/* What signs and seals: settings of [SESSIONS], the keys, and the object that uses them. */
#ifndef DUDA_SERVICE_KEYS_H
#define DUDA_SERVICE_KEYS_H

#include "seal/seal.h"
#include "text/begun.h"
#include "text/ended.h"
#include "text/vault.h"

enum { DUDA_KEYS_MAX = 8 };

enum duda_place_of_sessions { DUDA_STORE_MEMORY, DUDA_STORE_COOKIE, DUDA_STORE_NAMED };

/* What one configuration has for visitors. */
struct duda_visits {
    mk_str store_name; /* `memory`, `cookie`, or that of a store which a package brings */
    enum duda_place_of_sessions store;
    uint32_t idle_ms, life_ms;
    uint64_t n_max;
    mk_str key_file;
    const struct duda_seal *seal; /* NULL: not loaded */
    bool has_secret;              /* keys were configured: other machines, and the next start, have them */
    size_t n_keys;                /* the first one signs and seals */
    unsigned char keys[DUDA_KEYS_MAX][DUDA_SEAL_KEY];
    unsigned char own_key[DUDA_SEAL_KEY]; /* of this server, as long as its master lives */
    struct duda_vault vault;
    struct duda_ended *ended; /* sealed sessions; NULL: they are not in cookies */
    struct duda_begun *begun; /* sessions in a store; NULL: they are not in one */
};

extern const struct mk_conf_table duda_visits_table;

/* NULL: something is wrong, which has been reported. */
struct duda_visits *duda_visits_load(struct mk_config *config);
/* Cookies are to be signed or sealed: loads what does that. In the master: a sandbox may refuse it later.
 * False: there is no OpenSSL. */
bool duda_visits_seal(struct duda_visits *visits);

#endif
