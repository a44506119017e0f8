/* SPDX-License-Identifier: Apache-2.0 */
/* The service that tools/bench/duda.py measures. */
#include <duda.h>

static int hello(struct duda_ctx *d)
{
    return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
}

struct message {
    mk_str message;
};

static const struct duda_schema_field members[] = {DUDA_STRING(struct message, message)};
static const struct duda_schema shape = DUDA_SCHEMA(struct message, members);

static int json(struct duda_ctx *d)
{
    const struct message m = {MK_STR("Hello, World!")};
    return duda_send_json_struct(d, &shape, &m);
}

static int plaintext(struct duda_ctx *d)
{
    int e = duda_content_type(d, "text/plain");
    return e ? e : duda_puts(d, "Hello, World!");
}

static int nap(struct duda_ctx *d)
{
    int e = duda_deadline(d, 0);
    return e ? e : duda_sleep(d, 3600 * 1000);
}

static void echo(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data, void *ctx)
{
    (void)ctx;
    if (duda_websocket_try_send(s, kind, data))
        duda_websocket_close(s, 1011, "full");
}

static const struct duda_websocket_options called = {.on_message = echo, .ping_ms = MK_WEBSOCKET_NEVER};
static const struct duda_websocket_options straight = {.ping_ms = MK_WEBSOCKET_NEVER};

static int calls(struct duda_ctx *d)
{
    struct duda_websocket *s;
    return duda_websocket_open(d, &called, NULL, &s);
}

static int line(struct duda_ctx *d)
{
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, &straight, NULL, &s);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = duda_websocket_send(d, s, m.kind, m.data);
    return e;
}

static int room(struct duda_ctx *d)
{
    struct duda_websocket *s;
    int e = duda_websocket_open(d, &called, NULL, &s);
    return e ? e : duda_topic_attach(s, MK_STR("all"));
}

static int say(struct duda_ctx *d)
{
    int e = duda_topic_publish(d, MK_STR("all"), MK_WEBSOCKET_TEXT, MK_STR("a message for all of them"));
    return e ? e : duda_printf(d, "%zu\n", duda_topic_subscribers(d, MK_STR("all")));
}

static int crash(struct duda_ctx *d)
{
    (void)d;
    __builtin_trap();
}

DUDA_SERVICE(bench, DUDA_GET("/hello", hello, ""), DUDA_GET("/json", json, ""),
             DUDA_GET("/plaintext", plaintext, ""), DUDA_GET("/nap", nap, ""), DUDA_GET("/calls", calls, ""),
             DUDA_GET("/line", line, ""), DUDA_GET("/room", room, ""), DUDA_GET("/say", say, ""),
             DUDA_GET("/crash", crash, ""));
