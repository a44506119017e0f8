/* SPDX-License-Identifier: Apache-2.0 */
/* microhttpd PORT: hello by libmicrohttpd, the fastest way that it has for one thread. */
#include <microhttpd.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static struct MHD_Response *response;
static char begun; /* an answer at the first call, before the content, would end the connection */

static enum MHD_Result hello(void *data, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *content, size_t *len,
                             void **state)
{
    (void)data, (void)url, (void)method, (void)version, (void)content, (void)len;
    if (*state != &begun) {
        *state = &begun;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

int main(int argc, char **argv)
{
    static char text[] = "hello\n";
    response = MHD_create_response_from_buffer(sizeof text - 1, text, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "text/plain");
    if (!MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO,
                          (uint16_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 0), NULL, NULL, hello, NULL,
                          MHD_OPTION_CONNECTION_LIMIT, 1000u, MHD_OPTION_END))
        return 1;
    for (;;)
        pause();
}
