/* SPDX-License-Identifier: Apache-2.0 */
/* A program in transition from Monkey 1 to this library: it calls both. */
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>

int mk_create(void);
extern int monkey_1_calls;

static enum mk_verdict respond_with_calls(struct mk_request *request, struct mk_response *response,
                                          void *data)
{
    char buffer[64];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    (void)request, (void)data;
    mk_buf_addf(&text, "%d call of Monkey 1\n", monkey_1_calls);
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    mk_create();
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_add_route(s, "GET /calls", respond_with_calls, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:0", &port) || mk_server_start(s, 1)) {
        fprintf(stderr, "%s\n", mk_server_error(s));
        return 1;
    }
    printf("http://127.0.0.1:%u/calls\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_free(s);
    return 0;
}
