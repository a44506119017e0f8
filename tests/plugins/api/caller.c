/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions of another plugin, callee, at load time, while a route is bound, and during requests. */
#include "callee.h"

#include <stdlib.h>

struct called {
    mk_str loaded, host;
};

struct caller {
    mk_str name;
};

static bool read_name(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    if (mk_conf_ctx_config(ctx))
        mk_conf_ctx_error(ctx, value, "there is a configuration before there is one");
    *(mk_str *)field = value;
    return true;
}

static const struct mk_conf_key keys[] = {
    {.name = "Name",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct caller, name),
     .default_value = "unnamed",
     .parse = read_name},
};

static const struct mk_conf_table table = {
    .section = "CALLER", .keys = keys, .n = 1, .size = sizeof(struct caller), .scope = MK_CONF_VHOST};

MK_PLUGIN_DECLARE(caller);

static int load(struct mk_config *config, void **data)
{
    struct called *c = mk_config_alloc(config, sizeof *c);
    if (!c)
        return -1;
    c->loaded = callee_text(config, MK_STR("load"));
    *data = c;
    return c->loaded.p ? 0 : -1;
}

static void unload(void *data)
{
    (void)data;
    if (!callee_is_loaded())
        abort();
}

/* /call call WORDS: responds with the strings that callee returned at load time and while this route was
 * bound, the host's name, and the number of requests. */
struct route {
    mk_str loaded, bound, name;
};

static void on_end(void *data)
{
    (void)data;
}

static bool bind_call(const struct mk_conf_ctx *ctx, mk_str words, void **data)
{
    struct mk_config *config = mk_conf_ctx_config(ctx);
    struct route *r = mk_config_alloc(config, sizeof *r);
    const struct called *c = mk_config_data(config, &MK_PLUGIN_OF(caller));
    const struct caller *settings = mk_config_settings(config, &table);
    if (!r || !c || !settings || !mk_config_add_cleanup(config, on_end, r))
        return false;
    mk_config_allow_path(config, NULL, NULL, MK_STR("/dev/null"));
    if (mk_str_eq(words, MK_STR("wrong"))) {
        mk_config_error(config, NULL, NULL, "the plugin caller is not to be called so");
        return true;
    }
    *r = (struct route){.loaded = c->loaded, .bound = callee_text(config, words), .name = settings->name};
    *data = r;
    return r->bound.p != NULL;
}

static enum mk_verdict call(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct route *r = data;
    char buffer[300];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    mk_buf_addf(&text, "%.*s\n%.*s\n%.*s\n%u\n", MK_STR_ARG(r->loaded), MK_STR_ARG(r->bound),
                MK_STR_ARG(r->name), callee_count(mk_request_worker(request)));
    return mk_response_set_body(response, mk_buf_str(&text)) ? MK_ERROR : MK_DONE;
}

static const struct mk_handler handler = {.name = "call", .handle = call, .bind = bind_call};

MK_PLUGIN(caller) = {
    MK_PLUGIN_HEAD,
    .name = "caller",
    .version = "1",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
    .load = load,
    .unload = unload,
    .needs = (const char *const[]){"callee", NULL},
};
