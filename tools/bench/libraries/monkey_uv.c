/* SPDX-License-Identifier: Apache-2.0 */
/* monkey_uv PORT: a hello server with libmonkey in a libuv loop. */
#include <monkey/server.h>
#include <stdio.h>
#include <uv.h>

static enum mk_verdict send_hello(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    mk_response_set_body_nocopy(response, MK_STR("hello\n"));
    return MK_DONE;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    if (mk_server_step(poll->data) <= 0)
        uv_close((uv_handle_t *)poll, NULL);
}

int main(int argc, char **argv)
{
    char where[64];
    uv_poll_t poll;
    struct mk_server *s = mk_server_new(NULL);
    (void)snprintf(where, sizeof where, "127.0.0.1:%s", argc > 1 ? argv[1] : "0");
    if (mk_server_set(s, "SERVER", "KeepAliveRequests", "unlimited") ||
        mk_server_add_route(s, "GET /", send_hello, NULL) || mk_server_listen(s, where, NULL) ||
        mk_server_fd(s) < 0) {
        fprintf(stderr, "monkey_uv: %s\n", mk_server_error(s));
        return 1;
    }
    poll.data = s;
    uv_poll_init(uv_default_loop(), &poll, mk_server_fd(s));
    uv_poll_start(&poll, UV_READABLE, on_ready);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
