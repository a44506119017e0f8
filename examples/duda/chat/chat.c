/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket chat: each message goes to all clients, whichever worker serves them. */
#include <duda.h>
#include <duda/topic.h>

enum { TEXT_MAX = 500 };

DUDA_TOPIC(chat_topic, "chat");

static const char page[] =
    "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>chat</title>\n"
    "<style>body{font:16px system-ui;margin:2rem;max-width:40rem}input{font:inherit}</style>\n"
    "<h1>Chat</h1>\n<ul id=messages></ul>\n<form><input id=text autofocus maxlength=500 aria-label=Message> "
    "<button>Say</button></form>\n<script>\n"
    "const socket = new WebSocket(location.href.replace(/^http/, 'ws').replace(/[^/]*$/, 'socket'));\n"
    "socket.onopen = () => document.title = 'connected';\n"
    "socket.onclose = () => document.title = 'disconnected';\n"
    "socket.onmessage = e => document.getElementById('messages').append(\n"
    "  Object.assign(document.createElement('li'), {textContent: e.data}));\n"
    "document.forms[0].onsubmit = e => {\n  e.preventDefault();\n  const input = "
    "document.getElementById('text');\n"
    "  if (input.value) socket.send(input.value);\n  input.value = '';\n};\n</script>\n</html>\n";

static int show(struct duda_ctx *d)
{
    return duda_html(d, mk_str_from_c(page));
}

static int talk(struct duda_ctx *d)
{
    static const struct duda_websocket_options options = {.message_max = TEXT_MAX * 4, .ping_ms = 30000};
    struct duda_websocket *s;
    struct duda_message m;
    int e = duda_websocket_open(d, &options, NULL, &s);
    if (!e)
        e = duda_topic_attach(s, &chat_topic);
    while (!e && (e = duda_websocket_receive(d, s, &m)) > 0)
        e = m.kind == MK_WEBSOCKET_TEXT ? duda_topic_publish(d, &chat_topic, m.data) : 0;
    return e;
}

DUDA_SERVICE(chat, DUDA_GET("/", show, "The page."), DUDA_GET("/socket", talk, "The WebSocket of the page."));
