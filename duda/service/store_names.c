/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the stores in a configuration, before any worker opens them. */
#include <duda/store_backend.h>

#include "service/worker_ctx.h"

static bool is_store_declared(const struct duda_plugin_config *s, mk_str name)
{
    for (size_t i = 0; i < s->n_stores; i++)
        if (mk_str_eq(s->stores[i], name))
            return true;
    return false;
}

void duda_store_declare(struct mk_config *config, const void *section, mk_str name)
{
    struct duda_plugin_config *s = mk_config_data(config, duda_worker_ctx_plugin());
    if (!s)
        return;
    if (is_store_declared(s, name))
        mk_config_error(
            config, section, "Name",
            "another [KV] or [REDIS] already has the Name `%.*s`: services find stores by their Name",
            MK_STR_ARG(name));
    else if (s->n_stores < MK_LEN(s->stores))
        s->stores[s->n_stores++] = name;
}

void duda_store_require(struct mk_config *config, const void *section, const char *key, mk_str name)
{
    const struct duda_plugin_config *s = mk_config_data(config, duda_worker_ctx_plugin());
    if (!s || s->n_stores == MK_LEN(s->stores) || is_store_declared(s, name))
        return;
    mk_config_error(config, section, key, "no [KV] or [REDIS] has the Name `%.*s`", MK_STR_ARG(name));
    mk_config_suggest(config, name, s->stores, s->n_stores);
    if (section == s->session_config)
        mk_config_suggest(config, name, (const mk_str[]){MK_STR("memory"), MK_STR("cookie")}, 2);
}
