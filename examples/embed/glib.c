/* SPDX-License-Identifier: Apache-2.0 */
/* The server in the main loop of GLib, which is also that of GTK programs. */
#include <glib-unix.h>
#include <glib.h>
#include <monkey/server.h>
#include <stdio.h>

struct app {
    struct mk_server *server;
    GMainLoop *loop;
    int err;
};

static enum mk_verdict hello(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    g_autofree char *text =
        g_strdup_printf("hello from GLib %u.%u\n", glib_major_version, glib_minor_version);
    mk_response_set_body(response, mk_str_from_c(text));
    return MK_DONE;
}

static gboolean on_ready(gint fd, GIOCondition condition, gpointer data)
{
    struct app *app = data;
    (void)fd, (void)condition;
    app->err = mk_server_step(app->server);
    if (app->err > 0)
        return G_SOURCE_CONTINUE;
    g_main_loop_quit(app->loop);
    return G_SOURCE_REMOVE;
}

static gboolean on_signal(gpointer data)
{
    struct app *app = data;
    mk_server_stop(app->server, 5000);
    return G_SOURCE_CONTINUE;
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
        fprintf(stderr, "glib: %s\n", mk_server_error(app.server));
        mk_server_free(app.server);
        return 1;
    }
    app.loop = g_main_loop_new(NULL, FALSE);
    g_unix_fd_add(fd, G_IO_IN, on_ready, &app);
    g_unix_signal_add(SIGINT, on_signal, &app);
    g_unix_signal_add(SIGTERM, on_signal, &app);
    printf("http://127.0.0.1:%u/hello\n", port);
    fflush(stdout);
    g_main_loop_run(app.loop);
    g_main_loop_unref(app.loop);
    mk_server_free(app.server);
    return app.err != 0;
}
