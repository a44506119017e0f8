/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

#include "auth.h"
#include "common/package.h"

MK_PLUGIN_DECLARE(duda_auth);

static int start_auth_in_worker(struct mk_worker *w, void *data)
{
    struct auth_worker *worker = mk_mem_zalloc(1, sizeof *worker);
    (void)data;
    if (!worker)
        return -ENOMEM;
    mk_random(worker->key, sizeof worker->key);
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_auth), worker);
    return 0;
}

static void stop_auth_in_worker(struct mk_worker *w, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(w, &MK_PLUGIN_OF(duda_auth)));
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_auth), NULL);
}

/* ---- The `.data` of entries ---- */

static const char *check_basic(const void *data)
{
    const struct duda_basic_auth *auth = data;
    if (!duda_data_has_type(data, DUDA_DATA_BASIC_AUTH))
        return "duda_auth_basic() needs a `.data` that DUDA_BASIC_AUTH() initializes";
    return auth->find ? NULL : "the `.data` of duda_auth_basic() needs a function `.find`";
}

static const char *check_token(const void *data)
{
    const struct duda_token_auth *auth = data;
    if (!duda_data_has_type(data, DUDA_DATA_TOKEN_AUTH))
        return "duda_auth_bearer() and duda_auth_api_key() need a `.data` that DUDA_TOKEN_AUTH() initializes";
    return auth->find ? NULL : "the `.data` of middleware for tokens needs a function `.find`";
}

static const char *check_session(const void *data)
{
    return !data || duda_data_has_type(data, DUDA_DATA_SESSION_AUTH)
               ? NULL
               : "the `.data` of duda_auth_session() must be one that DUDA_SESSION_AUTH() initializes";
}

static const char *check_role(const void *data)
{
    return mk_str_trim(mk_str_from_c(data)).len
               ? NULL
               : "duda_require_role() needs a `.data` with the name of a role: `.data = \"admin\"`";
}

static int load_auth(struct mk_config *config, void **data)
{
    (void)data;
    auth_basic_set_plugin(&MK_PLUGIN_OF(duda_auth));
    duda_data_declare(config, duda_auth_basic, check_basic);
    duda_data_declare(config, duda_auth_bearer, check_token);
    duda_data_declare(config, duda_auth_api_key, check_token);
    duda_data_declare(config, duda_auth_session, check_session);
    duda_data_declare(config, duda_require_role, check_role);
    return 0;
}

PACKAGE_PLUGIN(auth, "Authentication for Duda services.", .load = load_auth,
               .worker_start = start_auth_in_worker, .worker_stop = stop_auth_in_worker,
               .needs = PACKAGE_NEEDS("duda"));
