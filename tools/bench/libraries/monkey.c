/* SPDX-License-Identifier: Apache-2.0 */
/* monkey PORT [epoll|threads]: a hello server with libmonkey: in its own loop, in an epoll loop, or in a
 * thread. */
#include <monkey/server.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static enum mk_verdict send_hello(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    mk_response_set_body_nocopy(response, MK_STR("hello\n"));
    return MK_DONE;
}

static int run_in_epoll(struct mk_server *s)
{
    int loop = epoll_create1(EPOLL_CLOEXEC), more = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = mk_server_fd(s)};
    if (event.data.fd < 0 || loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event))
        return -1;
    while (more > 0)
        if (epoll_wait(loop, &event, 1, -1) == 1)
            more = mk_server_step(s);
    return more;
}

static int run_server_mode(struct mk_server *s, const char *how)
{
    if (strcmp(how, "epoll") == 0)
        return run_in_epoll(s);
    if (strcmp(how, "threads") != 0)
        return mk_server_run(s);
    return mk_server_start(s, 1) || mk_server_wait(s);
}

int main(int argc, char **argv)
{
    char where[64];
    struct mk_server *s = mk_server_new(NULL);
    (void)snprintf(where, sizeof where, "127.0.0.1:%s", argc > 1 ? argv[1] : "0");
    if (mk_server_set(s, "SERVER", "KeepAliveRequests", "unlimited") ||
        mk_server_add_route(s, "GET /", send_hello, NULL) || mk_server_listen(s, where, NULL) ||
        run_server_mode(s, argc > 2 ? argv[2] : "")) {
        fprintf(stderr, "monkey: %s\n", mk_server_error(s));
        return 1;
    }
    return 0;
}
