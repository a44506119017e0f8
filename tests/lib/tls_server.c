/* SPDX-License-Identifier: Apache-2.0 */
/* tls_server ADDRESS CERTIFICATE KEY: a TLS server in two threads. */
#include <monkey/server.h>
#include <signal.h>
#include <stdio.h>

static enum mk_verdict respond_with_version(struct mk_request *request, struct mk_response *response,
                                            void *data)
{
    char buffer[64];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    (void)data;
    mk_buf_addf(&text, "%.*s %u\n", MK_STR_ARG(mk_request_scheme(request)), mk_request_version(request));
    mk_response_set_body(response, mk_buf_str(&text));
    return MK_DONE;
}

int main(int argc, char **argv)
{
    char where[64], pair[8192];
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    snprintf(where, sizeof where, "%s tls", argc > 3 ? argv[1] : "");
    snprintf(pair, sizeof pair, "%s %s", argc > 3 ? argv[2] : "", argc > 3 ? argv[3] : "");
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_set(s, "SERVER", "Certificate", pair) ||
        mk_server_add_route(s, "GET /version", respond_with_version, NULL) ||
        mk_server_listen(s, where, &port) || mk_server_start(s, 2)) {
        fprintf(stderr, "secure: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("https://127.0.0.1:%u/version\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(s, 1000);
    mk_server_wait(s);
    mk_server_free(s);
    return 0;
}
