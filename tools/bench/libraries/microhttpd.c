/* SPDX-License-Identifier: Apache-2.0 */
/* microhttpd PORT: a hello server with libmicrohttpd in its fastest single-threaded mode. */
#include <microhttpd.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static struct MHD_Response *response;
/* Marks the first call: responding before the request body was read would close the connection. */
static char begun;

static enum MHD_Result send_hello(void *data, struct MHD_Connection *connection, const char *url,
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
                          (uint16_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 0), NULL, NULL, send_hello, NULL,
                          MHD_OPTION_CONNECTION_LIMIT, 1000u, MHD_OPTION_END))
        return 1;
    for (;;)
        pause();
}
