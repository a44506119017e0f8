/* SPDX-License-Identifier: Apache-2.0 */
/* The server in the event loop of libevent. */
#include <event2/event.h>
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>

struct app {
    struct mk_server *server;
    struct event_base *base;
    int err;
};

static enum mk_verdict hello(struct mk_request *request, struct mk_response *response, void *data)
{
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)request, (void)data;
    mk_buf_addf(&text, "hello from libevent %s\n", event_get_version());
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

static void on_ready(evutil_socket_t fd, short events, void *data)
{
    struct app *app = data;
    (void)fd, (void)events;
    app->err = mk_server_step(app->server);
    if (app->err <= 0)
        event_base_loopbreak(app->base);
}

static void on_signal(evutil_socket_t number, short events, void *data)
{
    struct app *app = data;
    (void)number, (void)events;
    mk_server_stop(app->server, 5000);
}

static void run(struct app *app, int fd)
{
    app->base = event_base_new();
    struct event *events[] = {event_new(app->base, fd, EV_READ | EV_PERSIST, on_ready, app),
                              evsignal_new(app->base, SIGINT, on_signal, app),
                              evsignal_new(app->base, SIGTERM, on_signal, app)};
    for (size_t i = 0; i < MK_LEN(events); i++)
        event_add(events[i], NULL);
    event_base_dispatch(app->base);
    for (size_t i = 0; i < MK_LEN(events); i++)
        event_free(events[i]);
    event_base_free(app->base);
}

int main(int argc, char **argv)
{
    struct app app = {.server = mk_server_new(NULL)};
    unsigned port;
    int fd = -1;
    if (!mk_server_add_route(app.server, "GET /hello", hello, NULL) &&
        !mk_server_listen(app.server, argc > 1 ? argv[1] : "127.0.0.1:2001", &port))
        fd = mk_server_fd(app.server);
    if (fd < 0) {
        fprintf(stderr, "event: %s\n", mk_server_error(app.server));
        mk_server_free(app.server);
        return 1;
    }
    printf("http://127.0.0.1:%u/hello\n", port);
    fflush(stdout);
    run(&app, fd);
    mk_server_free(app.server);
    return app.err != 0;
}
