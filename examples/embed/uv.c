/* SPDX-License-Identifier: Apache-2.0 */
/* The server in the event loop of libuv. */
#include <monkey/server.h>
#include <stdio.h>
#include <uv.h>

struct app {
    struct mk_server *server;
    uv_loop_t loop;
    uv_poll_t poll;
    uv_signal_t interrupted, terminated;
    int err;
};

static enum mk_verdict hello(struct mk_request *request, struct mk_response *response, void *data)
{
    struct app *app = data;
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    (void)request;
    mk_buf_addf(&text, "hello from libuv, at %llu\n", (unsigned long long)uv_now(&app->loop));
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct app *app = poll->data;
    (void)status, (void)events;
    app->err = mk_server_step(app->server);
    if (app->err <= 0) { /* the server has stopped: uv_run() returns when all handles are closed */
        uv_close((uv_handle_t *)poll, NULL);
        uv_close((uv_handle_t *)&app->interrupted, NULL);
        uv_close((uv_handle_t *)&app->terminated, NULL);
    }
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct app *app = signal->data;
    (void)number;
    mk_server_stop(app->server, 5000);
}

static void watch(struct app *app, int fd)
{
    uv_loop_init(&app->loop);
    uv_poll_init(&app->loop, &app->poll, fd);
    uv_signal_init(&app->loop, &app->interrupted);
    uv_signal_init(&app->loop, &app->terminated);
    app->poll.data = app->interrupted.data = app->terminated.data = app;
    uv_poll_start(&app->poll, UV_READABLE, on_ready);
    uv_signal_start(&app->interrupted, on_signal, SIGINT);
    uv_signal_start(&app->terminated, on_signal, SIGTERM);
}

int main(int argc, char **argv)
{
    struct app app = {.server = mk_server_new(NULL)};
    unsigned port;
    int fd = -1;
    if (!mk_server_add_route(app.server, "GET /hello", hello, &app) &&
        !mk_server_listen(app.server, argc > 1 ? argv[1] : "127.0.0.1:2001", &port))
        fd = mk_server_fd(app.server);
    if (fd < 0) {
        fprintf(stderr, "uv: %s\n", mk_server_error(app.server));
        mk_server_free(app.server);
        return 1;
    }
    watch(&app, fd);
    printf("http://127.0.0.1:%u/hello\n", port);
    fflush(stdout);
    uv_run(&app.loop, UV_RUN_DEFAULT);
    uv_loop_close(&app.loop);
    mk_server_free(app.server);
    return app.err != 0;
}
