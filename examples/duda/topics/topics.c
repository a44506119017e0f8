/* SPDX-License-Identifier: Apache-2.0 */
/* Publish and subscribe: a message published to a topic reaches all its subscribers, event streams and
 * WebSockets, in all workers. Each topic keeps its latest messages, so a client that reconnects misses none.
 * A store keeps the last message of each topic for clients that connect later. With machines.conf, topics and the
 * store work across several machines. */
#define DUDA_USE "duda-store"
#include <duda.h>
#include <duda/store.h>
#include <duda/topic.h>
#include <errno.h>

enum { NAME_MAX_ = 40, TEXT_MAX = 4000, PING_MS = 15000 };

/* Clients choose the names of topics. */
DUDA_TOPIC_FAMILY(by_name, "topic/", .keep = 100);

/* The page subscribes to the topic `news` and publishes the text of its form there. */
static const char page[] =
    "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>topics</title>\n"
    "<style>body{font:16px system-ui;margin:2rem;max-width:40rem}input{font:inherit}</style>\n"
    "<h1>Topic: news</h1>\n<p id=last>-</p>\n<form><input id=text autofocus maxlength=500 aria-label=Text> "
    "<button>Publish</button></form>\n<script>\n"
    "const events = new EventSource('topics/news/events');\n"
    "events.onopen = () => document.title = 'connected';\n"
    "events.addEventListener('message', e => document.getElementById('last').textContent = e.data);\n"
    "document.forms[0].onsubmit = e => {\n  e.preventDefault();\n  const input = "
    "document.getElementById('text');\n  fetch('topics/news', {method: 'POST', body: input.value});\n"
    "  input.value = '';\n};\n</script>\n</html>\n";

static int show(struct duda_ctx *d)
{
    return duda_html(d, mk_str_from_c(page));
}

/* The name of the topic, which is also the key of its last message in the store. Absent: it is too long. */
static mk_str topic_name(struct duda_ctx *d)
{
    mk_str name = duda_param(d, "name");
    return name.len <= NAME_MAX_ ? name : MK_STR_NULL;
}

/* Stores the message before publishing it, so that a subscriber that missed it finds it in the store. */
static int publish(struct duda_ctx *d, mk_str name, mk_str text)
{
    const struct duda_topic topic = duda_topic_named(&by_name, name);
    int e = duda_store_set(d, duda_store_find(d, NULL), name, text, 0);
    return e ? e : duda_topic_publish(d, &topic, text);
}

static int publish_body(struct duda_ctx *d)
{
    mk_str name = topic_name(d), text;
    int e = duda_read_all(d, TEXT_MAX, &text);
    if (!e)
        e = name.p ? publish(d, name, text) : 400;
    return e ? e : 204;
}

static int last(struct duda_ctx *d, mk_str name, mk_str *text)
{
    int e = duda_store_get(d, duda_store_find(d, NULL), name, text);
    if (e == -ENOENT)
        *text = MK_STR_NULL;
    return e == -ENOENT ? 0 : e;
}

static int show_last(struct duda_ctx *d)
{
    mk_str name = topic_name(d), text = MK_STR_NULL;
    int e = name.p ? last(d, name, &text) : 400;
    return e ? e : text.p ? duda_write(d, text) : 404;
}

/* Receives the next message; if messages are missing, reads the last one from the store. Without a message within
 * PING_MS, event->data is absent. */
static int receive(struct duda_ctx *d, mk_str name, struct mk_sse_event *event)
{
    struct duda_topic_message m;
    int e = duda_topic_receive_message(d, PING_MS, &m);
    *event = (struct mk_sse_event){.id = m.id, .data = m.data};
    if (!e && (m.has_gap || m.dropped))
        e = last(d, name, &event->data);
    return e == -ETIME ? 0 : e;
}

/* A browser that reconnects sends the ID of the last event that it got. */
static int events(struct duda_ctx *d)
{
    mk_str name = topic_name(d), last_id = duda_sse_last_id(d);
    const struct duda_topic topic = duda_topic_named(&by_name, name);
    struct mk_sse_event event = {.id = MK_STR_NULL};
    /* Subscribes first, so that no message is missed. */
    int e = name.p ? duda_topic_subscribe_after(d, &topic, last_id) : 400;
    if (!e && !last_id.len)
        e = last(d, name, &event.data);
    size_t mark = duda_arena_mark(d);
    while (!e) {
        if (event.data.p)
            event.name = MK_STR("message");
        e = duda_sse_send(d, event.data.p ? &event : NULL);
        duda_arena_rewind(d, mark);
        e = e ? e : receive(d, name, &event);
    }
    return e;
}

static int talk(struct duda_ctx *d)
{
    static const struct duda_websocket_options options = {.message_max = TEXT_MAX, .ping_ms = PING_MS};
    mk_str name = topic_name(d);
    const struct duda_topic topic = duda_topic_named(&by_name, name);
    struct duda_websocket *s;
    struct duda_message m;
    int e = name.p ? duda_websocket_open(d, &options, NULL, &s) : 400;
    if (!e)
        e = duda_topic_attach_after(d, s, &topic, duda_query(d, "last_event_id"));
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = m.kind == MK_WEBSOCKET_TEXT ? publish(d, name, m.data) : 0;
    return e;
}

DUDA_SERVICE(topics, DUDA_GET("/", show, "The page."),
             DUDA_POST("/topics/:name", publish_body, "Publishes a message."),
             DUDA_GET("/topics/:name", show_last, "Shows the last message."),
             DUDA_GET("/topics/:name/events", events, "Streams the messages as events."),
             DUDA_GET("/topics/:name/socket", talk, "Exchanges messages over a WebSocket."));
