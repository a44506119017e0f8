/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket chat: the page is at /, the WebSocket at /chat. Each message goes to all members. */
#include <errno.h>
#include <monkey/server.h>
#include <monkey/websocket.h>
#include <stdio.h>

static const char page[] =
    "<!doctype html><title>Chat</title><input id=in autofocus><pre id=out></pre><script>\n"
    "const ws = new WebSocket(location.href.replace('http', 'ws') + 'chat');\n"
    "ws.onmessage = m => out.append(m.data + '\\n');\n"
    "ws.onclose = () => out.append('-- closed\\n');\n"
    "document.querySelector('#in').onchange = e => { ws.send(e.target.value); e.target.value = ''; };\n"
    "</script>\n";

static enum mk_verdict show_page(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("text/html; charset=utf-8"));
    mk_response_set_body_nocopy(response, mk_str_of(page, sizeof page - 1));
    return MK_DONE;
}

/* ---- The members: no lock, because the server runs in a single thread ---- */

struct member {
    struct mk_websocket *socket;
    struct member *next;
};

struct topic {
    struct member *first;
};

static void publish(struct topic *topic, mk_str text)
{
    struct mk_websocket_message *m = mk_websocket_message_new(MK_WEBSOCKET_TEXT, text);
    for (struct member *at = topic->first; m && at; at = at->next)
        if (mk_websocket_send_message(at->socket, m) == -EAGAIN)
            mk_websocket_abort(at->socket); /* its queue is full: the client is too slow */
    mk_websocket_message_free(m);
}

static struct topic topic;

static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
{
    (void)ctx, (void)s;
    if (kind == MK_WEBSOCKET_TEXT)
        publish(&topic, data);
}

/* The last callback, called exactly once, whatever the reason for closing. */
static void on_close(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason)
{
    struct member **at = &topic.first;
    (void)s, (void)code, (void)reason;
    while (*at != ctx)
        at = &(*at)->next;
    *at = (*at)->next;
    mk_mem_free(ctx);
    publish(&topic, MK_STR("-- one has left"));
}

static const struct mk_websocket_ops ops = {.on_message = on_message, .on_close = on_close};
static const struct mk_websocket_options options = {
    .ops = &ops, .origins = "same", .message_max = 4096, .flags = MK_WEBSOCKET_COMPRESS};

static enum mk_verdict join(struct mk_request *request, struct mk_response *response, void *data)
{
    struct member *m = mk_mem_zalloc(1, sizeof *m);
    (void)data;
    if (!m || mk_websocket_open(request, response, &options, m, &m->socket)) {
        mk_mem_free(m);
        return MK_ERROR; /* mk_websocket_open() has set the status */
    }
    m->next = topic.first;
    topic.first = m;
    return MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_set(s, "PLUGINS", "Load", "websocket") ||
        mk_server_add_route(s, "GET /", show_page, NULL) || mk_server_add_route(s, "GET /chat", join, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port)) {
        fprintf(stderr, "chat: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/\n", port);
    fflush(stdout);
    int err = mk_server_run(s);
    mk_server_free(s);
    return err != 0;
}
