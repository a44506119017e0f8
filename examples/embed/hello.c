/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal embedded server: one handler; the calling thread runs the server. */
#include <monkey/server.h>
#include <stdio.h>

static enum mk_verdict hello(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)request, (void)data;
    mk_response_set_body_nocopy(response, MK_STR("hello\n"));
    return MK_DONE;
}

int main(int argc, char **argv)
{
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_add_route(s, "GET /hello", hello, NULL) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port)) {
        fprintf(stderr, "hello: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/hello\n", port);
    fflush(stdout);
    int err = mk_server_run(s);
    if (err)
        fprintf(stderr, "hello: %s\n", mk_server_error(s));
    mk_server_free(s);
    return err != 0;
}
