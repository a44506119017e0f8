/* SPDX-License-Identifier: Apache-2.0 */
/* evhttp PORT: a hello server with libevent's HTTP server. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdint.h>
#include <stdlib.h>

static void send_hello(struct evhttp_request *request, void *data)
{
    struct evbuffer *out = evhttp_request_get_output_buffer(request);
    (void)data;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
    evbuffer_add_reference(out, "hello\n", 6, NULL, NULL);
    evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

int main(int argc, char **argv)
{
    struct event_base *base = event_base_new();
    struct evhttp *http = evhttp_new(base);
    evhttp_set_cb(http, "/", send_hello, NULL);
    if (evhttp_bind_socket(http, "127.0.0.1", (uint16_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 0)))
        return 1;
    return event_base_dispatch(base);
}
