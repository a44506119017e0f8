/* SPDX-License-Identifier: Apache-2.0 */
/* A dashboard, in the manner of mongoose: one thread, one loop, and all clients receive the metrics each second
 * over WebSocket. docs/guide/from-mongoose.md compares it with the original. */
#include <monkey/json.h>
#include <monkey/server.h>
#include <monkey/websocket.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct mk_server *server;

/* ---- The device ---- */

static unsigned n_ticks;
static bool led;

static void add_metrics(struct mk_buf *out)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_uint(mk_json_key(&w, "ticks"), n_ticks);
    mk_json_fixed(mk_json_key(&w, "temperature"), 21.0 + n_ticks % 10 / 10.0, 1);
    mk_json_bool(mk_json_key(&w, "led"), led);
    mk_json_end_object(&w);
}

/* ---- WebSocket: mongoose walks mgr->conns and checks is_websocket; a program of libmonkey has its own list ---- */

struct client {
    struct mk_websocket *socket;
    struct client *next;
};

static struct client *clients; /* no lock, because the program has one thread */

/* Runs in the loop of the server. */
static void send_metrics(struct mk_worker *worker, void *ctx)
{
    char buf[128];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)worker, (void)ctx;
    add_metrics(&text);
    struct mk_websocket_message *message = mk_websocket_message_new(MK_WEBSOCKET_TEXT, mk_buf_str(&text));
    for (struct client *at = clients; at && message; at = at->next)
        (void)mk_websocket_send_message(at->socket, message);
    mk_websocket_message_free(message);
}

static void on_close(void *ctx, struct mk_websocket *socket, unsigned code, mk_str reason)
{
    struct client **at = &clients;
    (void)socket, (void)code, (void)reason;
    while (*at != ctx)
        at = &(*at)->next;
    *at = (*at)->next;
    free(ctx);
}

static const struct mk_websocket_ops ops = {.on_close = on_close};
static const struct mk_websocket_options options = {.ops = &ops, .origins = "same"};

static enum mk_verdict open_socket(struct mk_request *request, struct mk_response *response, void *data)
{
    struct client *c = calloc(1, sizeof *c);
    (void)data;
    if (!c || mk_websocket_open(request, response, &options, c, &c->socket)) {
        free(c);
        return MK_ERROR;
    }
    c->next = clients;
    clients = c;
    return MK_DONE;
}

/* ---- HTTP ---- */

static enum mk_verdict show_metrics(struct mk_request *request, struct mk_response *response, void *data)
{
    char buf[128];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)request, (void)data;
    add_metrics(&text);
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("application/json"));
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

static enum mk_verdict toggle_led(struct mk_request *request, struct mk_response *response, void *data)
{
    led = !led;
    return show_metrics(request, response, data);
}

static const struct mk_memory_file page = {
    .path = "/index.html",
    .content = MK_STR_INIT("<!doctype html><title>Dashboard</title><pre id=out></pre>\n"
                           "<button onclick=\"fetch('/api/led', {method: 'POST'})\">LED</button><script>\n"
                           "new WebSocket(location.href.replace('http', 'ws') + 'websocket').onmessage =\n"
                           "    m => { document.querySelector('#out').textContent = m.data; };\n"
                           "</script>\n")};

/* ---- The loop ---- */

static void on_signal(int number)
{
    (void)number;
    mk_server_stop(server, 1000); /* async-signal-safe */
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int run(int fd)
{
    int more = 1;
    int64_t due = now_ms();
    while (more > 0) { /* mg_mgr_poll() */
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = due - now_ms();
        poll(&p, 1, left > 0 ? (int)left : 0);
        if (now_ms() >= due) { /* mg_timer_add() */
            due += 1000;
            n_ticks++;
            if (mk_server_post(server, send_metrics, NULL, NULL))
                fprintf(stderr, "dashboard: skipped an update\n"); /* out of memory, or stopping */
        }
        more = mk_server_step(server);
    }
    return more;
}

int main(int argc, char **argv)
{
    unsigned port;
    int fd = -1;
    server = mk_server_new(NULL);
    if (!mk_server_set(server, "PLUGINS", "Load", "websocket") &&
        !mk_server_add_route(server, "GET /api/metrics", show_metrics, NULL) &&
        !mk_server_add_route(server, "POST /api/led", toggle_led, NULL) &&
        !mk_server_add_route(server, "GET /websocket", open_socket, NULL) &&
        !mk_server_add_files(server, &page, 1, sizeof page) &&
        !mk_server_listen(server, argc > 1 ? argv[1] : "127.0.0.1:2001", &port))
        fd = mk_server_fd(server);
    if (fd < 0) {
        fprintf(stderr, "dashboard: %s\n", mk_server_error(server));
        mk_server_free(server);
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    printf("http://127.0.0.1:%u/\n", port);
    fflush(stdout);
    int err = run(fd);
    mk_server_free(server);
    return err != 0;
}
