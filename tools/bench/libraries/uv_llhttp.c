/* SPDX-License-Identifier: Apache-2.0 */
/* uv_llhttp PORT: a hello server with libuv and llhttp, with the minimum that a real server needs: parsed
 * headers, a Host check, an idle timeout per connection, a Date header. It writes without waiting for an
 * event. */
#include <llhttp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <uv.h>

enum { FIELDS_MAX = 64, IDLE_MS = 60000 };

struct field {
    const char *name, *value;
    size_t name_len, value_len;
};

struct connection {
    uv_tcp_t tcp;
    uv_timer_t idle;
    unsigned n_handles, n_fields;
    llhttp_t parser;
    const char *path;
    size_t path_len, in_len;
    struct field fields[FIELDS_MAX];
    char in[16 * 1024]; /* the whole request head, so that parsed strings stay in place */
};

static llhttp_settings_t settings;
static char date[64];

static void on_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    if (--c->n_handles == 0)
        free(c);
}

static void close_connection(struct connection *c)
{
    if (uv_is_closing((uv_handle_t *)&c->tcp))
        return;
    uv_close((uv_handle_t *)&c->tcp, on_closed);
    uv_close((uv_handle_t *)&c->idle, on_closed);
}

static void on_idle_timeout(uv_timer_t *timer)
{
    close_connection(timer->data);
}

static void update_date(uv_timer_t *timer)
{
    struct tm tm;
    time_t now = time(NULL);
    (void)timer;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
}

static int on_message_begin(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->path_len = c->n_fields = 0;
    return 0;
}

static void append_fragment(const char **text, size_t *len, const char *at, size_t more)
{
    if (*len == 0)
        *text = at;
    *len += more;
}

static int on_request_path(llhttp_t *parser, const char *at, size_t len)
{
    struct connection *c = parser->data;
    append_fragment(&c->path, &c->path_len, at, len);
    return 0;
}

static int on_header_name_fragment(llhttp_t *parser, const char *at, size_t len)
{
    struct connection *c = parser->data;
    if (c->n_fields == 0 || c->fields[c->n_fields - 1].value_len) {
        if (c->n_fields == FIELDS_MAX)
            return -1;
        c->fields[c->n_fields++] = (struct field){0};
    }
    struct field *f = &c->fields[c->n_fields - 1];
    append_fragment(&f->name, &f->name_len, at, len);
    return 0;
}

static int on_header_value_fragment(llhttp_t *parser, const char *at, size_t len)
{
    struct connection *c = parser->data;
    struct field *f = &c->fields[c->n_fields - 1];
    append_fragment(&f->value, &f->value_len, at, len);
    return 0;
}

static int has_host_header(const struct connection *c)
{
    for (unsigned i = 0; i < c->n_fields; i++)
        if (c->fields[i].name_len == 4 && strncasecmp(c->fields[i].name, "Host", 4) == 0)
            return 1;
    return 0;
}

static int send_response(struct connection *c, const char *status, const char *text)
{
    char out[512];
    int len = snprintf(
        out, sizeof out,
        "HTTP/1.1 %s\r\nServer: uv\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
        status, date, strlen(text), text);
    uv_buf_t buf = {.base = out, .len = (size_t)len};
    return uv_try_write((uv_stream_t *)&c->tcp, &buf, 1) == len ? 0 : -1;
}

static int on_request_complete(llhttp_t *parser)
{
    struct connection *c = parser->data;
    c->in_len = 0;
    if (!has_host_header(c))
        return send_response(c, "400 Bad Request", "no Host\n");
    if (c->path_len != 1 || memcmp(c->path, "/", 1) != 0)
        return send_response(c, "404 Not Found", "nothing here\n");
    if (parser->method != HTTP_GET)
        return send_response(c, "405 Method Not Allowed", "GET only\n");
    return send_response(c, "200 OK", "hello\n");
}

static void provide_read_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
    struct connection *c = handle->data;
    (void)wanted;
    *buf = (uv_buf_t){.base = c->in + c->in_len, .len = sizeof c->in - c->in_len};
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct connection *c = stream->data;
    if (n > 0)
        c->in_len += (size_t)n;
    if (n < 0 || llhttp_execute(&c->parser, buf->base, (size_t)n) != HPE_OK)
        close_connection(c);
    else
        uv_timer_again(&c->idle);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct connection *c = calloc(1, sizeof *c);
    if (status < 0 || !c)
        abort();
    c->n_handles = 2;
    uv_tcp_init(listener->loop, &c->tcp);
    uv_timer_init(listener->loop, &c->idle);
    c->tcp.data = c->idle.data = c;
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    uv_accept(listener, (uv_stream_t *)&c->tcp);
    uv_tcp_nodelay(&c->tcp, 1);
    uv_timer_start(&c->idle, on_idle_timeout, IDLE_MS, IDLE_MS);
    uv_read_start((uv_stream_t *)&c->tcp, provide_read_buffer, on_read);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    uv_timer_t seconds;
    struct sockaddr_in where;
    llhttp_settings_init(&settings);
    settings.on_message_begin = on_message_begin;
    settings.on_url = on_request_path;
    settings.on_header_field = on_header_name_fragment;
    settings.on_header_value = on_header_value_fragment;
    settings.on_message_complete = on_request_complete;
    uv_timer_init(loop, &seconds);
    uv_timer_start(&seconds, update_date, 0, 1000);
    uv_tcp_init(loop, &listener);
    uv_ip4_addr("127.0.0.1", argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0, &where);
    if (uv_tcp_bind(&listener, (struct sockaddr *)&where, 0) ||
        uv_listen((uv_stream_t *)&listener, 1024, on_connection))
        return 1;
    return uv_run(loop, UV_RUN_DEFAULT);
}
