/* SPDX-License-Identifier: Apache-2.0 */
#include "service/session_config.h"

#include <dlfcn.h>
#include <duda/store_backend.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/run_state.h"

enum { SECRET_MIN = 32, KEY_FILE_MAX = 16 << 10 };

static const struct mk_conf_key keys[] = {
    {.name = "Store",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct duda_session_config, store_name),
     .default_value = "memory",
     .min = 1,
     .max = 63,
     .help = "Storage of sessions: `memory` shared by all workers, sealed in the client's `cookie`, or the "
             "Name of a [KV] or [REDIS], such as `main`."},
    {.name = "IdleTimeout",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct duda_session_config, idle_ms),
     .default_value = "30m",
     .min = 1000,
     .help =
         "A session ends after this time without a request. In a [KV], [REDIS] or cookie, it may end up to a "
         "quarter of this time later, but at most a minute, because it is not written on each request."},
    {.name = "AbsoluteTimeout",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct duda_session_config, life_ms),
     .default_value = "12h",
     .min = 1000,
     .help = "Maximum lifetime of a session."},
    {.name = "MaxSessions",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct duda_session_config, n_max),
     .default_value = "10000",
     .min = 8,
     .max = 1000000,
     .help = "Maximum number of sessions in memory, 3 KB each. Beyond it, sessions without a login "
             "(duda_session_regenerate()) are evicted first, starting with the address that has the most. In "
             "a [KV] or [REDIS]: sessions without a login that one address may create within `IdleTimeout`; "
             "then duda_session_set() returns -EDQUOT."},
    {.name = "KeyFile",
     .type = MK_CONF_TEXT,
     .flags = MK_CONF_READS,
     MK_CONF_AT(struct duda_session_config, key_file),
     .help =
         "Secrets that sign and seal cookies and session records, one line of at least 32 characters "
         "each: the first signs new cookies, all of them verify old ones. Default: the environment "
         "variable `DUDA_KEYS`, or else a random key that lives as long as the server; under `monkey run`, a "
         "key of the project in the user's cache folder."},
};

const struct mk_conf_table duda_session_config_table = {
    .section = "SESSIONS",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = "Sessions and cookies of Duda services.",
    .size = sizeof(struct duda_session_config),
    .scope = MK_CONF_SERVER,
};

/* ---- The crypto object ---- */

/* The crypto object is located beside our own object, and is never unloaded. */
static const struct duda_cookie_crypto *load_crypto_module(void)
{
    Dl_info info;
    char path[4096];
    struct mk_buf b = mk_buf_fixed(path, sizeof path);
    const char *slash = dladdr(keys, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    if (slash)
        mk_buf_addf(&b, "%.*s/monkey-duda-seal.so", (int)(slash - info.dli_fname), info.dli_fname);
    mk_buf_add_char(&b, '\0');
    void *object = slash && !b.failed ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct duda_cookie_crypto *seal = object ? dlsym(object, "duda_cookie_crypto") : NULL;
    return seal && seal->abi == DUDA_COOKIE_CRYPTO_ABI ? seal : NULL;
}

/* ---- Keys ---- */

static bool add_session_key(struct mk_config *config, struct duda_session_config *v, mk_str secret)
{
    if (secret.len < SECRET_MIN) {
        mk_config_error(config, v, v->key_file.len ? "KeyFile" : NULL,
                        "a key has %zu characters, but must have at least %d: `openssl rand -hex 32` prints "
                        "a suitable one",
                        secret.len, SECRET_MIN);
        return false;
    }
    if (v->n_keys == DUDA_SESSION_KEYS_MAX) {
        mk_config_error(config, v, v->key_file.len ? "KeyFile" : NULL, "more than %d keys",
                        DUDA_SESSION_KEYS_MAX);
        return false;
    }
    return v->seal->key(secret, v->keys[v->n_keys++]);
}

static bool add_session_keys(struct mk_config *config, struct duda_session_config *v, mk_str secrets)
{
    while (secrets.p) {
        mk_str line = mk_str_cut(&secrets, '\n'), word;
        while ((word = mk_str_word(&line)).len)
            if (!add_session_key(config, v, word))
                return false;
    }
    return true;
}

static bool read_key_file(struct mk_config *config, struct duda_session_config *v)
{
    char text[KEY_FILE_MAX];
    mk_str path = mk_config_path(config, v, v->key_file);
    int fd = path.p ? open(path.p, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (n < 0)
        mk_config_error(config, v, "KeyFile", "cannot read the file: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    bool good = n >= 0 && add_session_keys(config, v, mk_str_of(text, (size_t)n));
    explicit_bzero(text, sizeof text);
    return good;
}

/* Gets a key that the workers of this master and of its later configurations share. */
static bool get_server_key(struct mk_config *config, struct duda_session_config *v)
{
    struct own {
        bool is_made;
        unsigned char key[DUDA_COOKIE_CRYPTO_KEY];
    } *own = duda_shared_memory(config, "duda-key", sizeof *own);
    if (!own)
        return false;
    if (!own->is_made && !duda_run_state_read_key(own->key, sizeof own->key))
        mk_random(own->key, sizeof own->key);
    own->is_made = true;
    memcpy(v->own_key, own->key, DUDA_COOKIE_CRYPTO_KEY);
    return true;
}

/* OpenSSL is larger than everything else, so it is loaded only if used. */
bool duda_session_config_load_crypto(struct duda_session_config *v)
{
    if (!v->seal)
        v->seal = load_crypto_module();
    return v->seal;
}

static bool load_session_keys(struct mk_config *config, struct duda_session_config *v)
{
    const char *given = getenv("DUDA_KEYS");
    bool needs_crypto = v->key_file.len || v->store == DUDA_SESSION_BACKEND_COOKIE || given;
    if (needs_crypto && !duda_session_config_load_crypto(v) &&
        (v->key_file.len || v->store == DUDA_SESSION_BACKEND_COOKIE)) {
        mk_config_error(config, v, v->key_file.len ? "KeyFile" : "Store",
                        "sealed cookies need OpenSSL, and Monkey was built without it");
        return false;
    }
    bool good = v->key_file.len    ? read_key_file(config, v)
                : given && v->seal ? add_session_keys(config, v, mk_str_from_c(given))
                                   : true;
    if (!good || !get_server_key(config, v))
        return false;
    v->has_secret = v->n_keys > 0;
    if (!v->has_secret)
        memcpy(v->keys[v->n_keys++], v->own_key, DUDA_COOKIE_CRYPTO_KEY);
    return true;
}

static bool map_shared_memory(struct mk_config *config, struct duda_session_config *v)
{
    char name[64];
    struct mk_buf b = mk_buf_fixed(name, sizeof name);
    mk_buf_addf(&b, "duda-sessions-%llu%c", (unsigned long long)v->n_max, 0);
    void *memory = duda_shared_memory(config, name, duda_session_shm_size((size_t)v->n_max));
    if (memory)
        duda_session_shm_init(&v->shm, memory, (size_t)v->n_max);
    if (v->store == DUDA_SESSION_BACKEND_COOKIE)
        v->ended = duda_shared_memory(config, "duda-ended", sizeof *v->ended);
    if (v->ended)
        duda_revoked_sessions_init(v->ended);
    if (v->store == DUDA_SESSION_BACKEND_STORE)
        v->creation_rate = duda_shared_memory(config, "duda-begun", sizeof *v->creation_rate);
    if (v->creation_rate)
        duda_session_rate_init(v->creation_rate);
    return memory && (v->ended || v->store != DUDA_SESSION_BACKEND_COOKIE) &&
           (v->creation_rate || v->store != DUDA_SESSION_BACKEND_STORE);
}

struct duda_session_config *duda_session_config_load(struct mk_config *config)
{
    struct duda_session_config *v = mk_config_settings(config, &duda_session_config_table);
    if (!v)
        return NULL;
    v->store = mk_str_eq(v->store_name, MK_STR("memory"))   ? DUDA_SESSION_BACKEND_MEMORY
               : mk_str_eq(v->store_name, MK_STR("cookie")) ? DUDA_SESSION_BACKEND_COOKIE
                                                            : DUDA_SESSION_BACKEND_STORE;
    return load_session_keys(config, v) && map_shared_memory(config, v) ? v : NULL;
}
