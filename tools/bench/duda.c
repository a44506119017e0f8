/* SPDX-License-Identifier: Apache-2.0 */
/* The service that tools/bench/duda.py and instructions.py measure. */
#include <duda.h>

static int send_greeting(struct duda_ctx *d)
{
    return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
}

struct message {
    mk_str message;
};

static const struct duda_schema_field members[] = {DUDA_STRING(struct message, message)};
static const struct duda_schema message_schema = DUDA_SCHEMA(struct message, members);

static int send_json(struct duda_ctx *d)
{
    const struct message m = {MK_STR("Hello, World!")};
    return duda_send_json_struct(d, &message_schema, &m);
}

static int send_plaintext(struct duda_ctx *d)
{
    int e = duda_content_type(d, MK_STR("text/plain"));
    return e ? e : duda_puts(d, "Hello, World!");
}

static int sleep_for_an_hour(struct duda_ctx *d)
{
    int e = duda_deadline(d, MK_FOREVER);
    return e ? e : duda_sleep(d, 3600 * 1000);
}

static void echo_message(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data, void *ctx)
{
    (void)ctx;
    if (duda_websocket_try_send(s, kind, data))
        duda_websocket_close(s, 1011, MK_STR("full"));
}

static const struct duda_websocket_options callback_options = {.on_message = echo_message,
                                                               .ping_ms = MK_FOREVER};
static const struct duda_websocket_options receive_options = {.ping_ms = MK_FOREVER};

static int open_websocket_with_callbacks(struct duda_ctx *d)
{
    struct duda_websocket *s;
    return duda_websocket_open(d, &callback_options, NULL, &s);
}

static int echo_sequentially(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, &receive_options, NULL, &s);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_websocket_send(d, s, m.kind, m.data);
    return e;
}

DUDA_TOPIC(all, "all", .counts_subscribers = true);

static int open_websocket_in_topic(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, &callback_options, NULL, &s);
    return e ? e : duda_topic_attach(s, &all);
}

static int publish_to_topic(struct duda_ctx *d)
{
    int e = duda_topic_publish(d, &all, MK_STR("a message for all of them"));
    uint64_t n = 0;
    e = e ? e : duda_topic_subscribers(d, &all, &n);
    return e ? e : duda_printf(d, "%zu\n", (size_t)n);
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    __builtin_trap();
}

DUDA_SERVICE(bench, DUDA_GET("/hello", send_greeting, ""), DUDA_GET("/json", send_json, ""),
             DUDA_GET("/plaintext", send_plaintext, ""), DUDA_GET("/nap", sleep_for_an_hour, ""),
             DUDA_GET("/calls", open_websocket_with_callbacks, ""), DUDA_GET("/line", echo_sequentially, ""),
             DUDA_GET("/room", open_websocket_in_topic, ""), DUDA_GET("/say", publish_to_topic, ""),
             DUDA_GET("/crash", crash, ""));
