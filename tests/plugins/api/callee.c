/* SPDX-License-Identifier: Apache-2.0 */
/* Exports functions for another plugin, caller. */
#include "callee.h"

struct callee {
    mk_str text;
};

static const struct mk_conf_key keys[] = {
    {.name = "Text", .type = MK_CONF_TEXT, MK_CONF_AT(struct callee, text), .default_value = "by default"},
};

static const struct mk_conf_table table = {
    .section = "CALLEE", .keys = keys, .n = 1, .size = sizeof(struct callee), .scope = MK_CONF_SERVER};

MK_PLUGIN_DECLARE(callee);

static unsigned loads;

static int load(struct mk_config *config, void **data)
{
    *data = mk_config_settings(config, &table);
    loads += *data != NULL;
    return *data ? 0 : -1;
}

static void unload(void *data)
{
    (void)data;
    loads--;
}

bool callee_is_loaded(void)
{
    return loads > 0;
}

mk_str callee_text(struct mk_config *config, mk_str words)
{
    const struct callee *c = mk_config_data(config, &MK_PLUGIN_OF(callee));
    const struct callee *plain = mk_config_defaults(config, &table);
    struct mk_buf text = mk_buf_growing(1000);
    if (!c || !plain)
        return MK_STR_NULL;
    mk_buf_addf(&text, "%.*s, not %.*s: %.*s", MK_STR_ARG(c->text), MK_STR_ARG(plain->text),
                MK_STR_ARG(words));
    mk_str copy = mk_config_copy(config, mk_buf_str(&text));
    mk_buf_free(&text);
    return copy;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(callee), mk_mem_zalloc(1, sizeof(unsigned)));
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(worker, &MK_PLUGIN_OF(callee)));
}

unsigned callee_count(struct mk_worker *worker)
{
    unsigned *n = mk_worker_data(worker, &MK_PLUGIN_OF(callee));
    return n ? ++*n : 0;
}

MK_PLUGIN(callee) = {
    MK_PLUGIN_HEAD,
    .name = "callee",
    .version = "1",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .load = load,
    .unload = unload,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
};
