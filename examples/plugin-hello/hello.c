/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin of docs/guide/plugins.md: a handler greets by name, and a hook adds a header to every response
 * of the host. hello.conf is a configuration that uses it. */
#include <monkey/plugin.h>

struct hello {
    mk_str greeting;
};

static const struct mk_conf_key keys[] = {
    {.name = "Greeting",
     .type = MK_CONF_TEXT,
     MK_CONF_AT(struct hello, greeting),
     .default_value = "Hello",
     .help = "The word before the name."},
};

static const struct mk_conf_table table = {
    .section = "HELLO",
    .keys = keys,
    .n = 1,
    .help = "How to greet.",
    .size = sizeof(struct hello),
    .scope = MK_CONF_VHOST,
};

/* In a host without [HELLO], *host_data stays NULL, so the server calls no hook of this plugin there. */
static int host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    (void)h, (void)data;
    *host_data = mk_config_section(config, &table, NULL);
    return 0;
}

static void on_response(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct hello *hello = host_data;
    (void)request;
    mk_response_add_header(response, MK_STR("X-Greeting"), hello->greeting);
}

MK_PLUGIN_DECLARE(hello);

/* GET /hello/NAME */
static enum mk_verdict greet(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct hello *hello = mk_vhost_data(mk_request_vhost(request), &MK_PLUGIN_OF(hello));
    char buf[256];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)data;
    if (!hello)
        return MK_NEXT;
    mk_str path = mk_request_path(request);
    mk_str name = mk_str_skip(path, mk_str_find_last(path, '/') + 1);
    mk_buf_add(&text, hello->greeting);
    mk_buf_add(&text, MK_STR(", "));
    mk_buf_add(&text, name.len ? name : MK_STR("stranger"));
    mk_buf_add(&text, MK_STR("!\n"));
    if (text.failed) {
        mk_response_set_status(response, 414);
        return MK_ERROR;
    }
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

static const struct mk_handler handler = {
    .name = "hello",
    .methods = MK_METHOD_BIT(MK_METHOD_GET),
    .handle = greet,
};

MK_PLUGIN(hello) = {
    MK_PLUGIN_HEAD,
    .name = "hello",
    .version = "1.0",
    .help = "Greets.",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
    .host = host,
    .on_response = on_response,
};
