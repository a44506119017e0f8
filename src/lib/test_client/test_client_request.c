/* SPDX-License-Identifier: Apache-2.0 */
/* Complete requests of an in-memory test client. */
#include "base/clock.h"
#include "http/response_parser.h"
#include "lib/handle_registry.h"
#include "lib/last_error.h"
#include "lib/lib_worker.h"
#include "lib/test_client/h2_client.h"
#include "lib/test_client/test_client.h"

enum { PATIENCE_MS = 30000 };

/* ---- Writing ---- */

static bool is_header_text(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return true;
}

static bool is_request_line_word(mk_str s)
{
    return s.len > 0 && is_header_text(s) && mk_str_find(s, ' ') == MK_STR_NONE;
}

static bool has_header(const struct mk_header *fields, size_t n, mk_str name)
{
    for (size_t i = 0; i < n; i++)
        if (mk_str_eq_nocase(fields[i].name, name))
            return true;
    return false;
}

static bool are_valid_headers(const struct mk_header *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_request_line_word(fields[i].name) || !is_header_text(fields[i].value))
            return false;
    return true;
}

static mk_err write_http1_request(const struct mk_http2_client_request *q, struct mk_buf *out)
{
    mk_buf_addf(out, "%.*s %.*s HTTP/1.1\r\n", MK_STR_ARG(q->method), MK_STR_ARG(q->target));
    if (!has_header(q->fields, q->n, MK_STR("Host")))
        mk_buf_add(out, MK_STR("Host: localhost\r\n"));
    if (q->content.p && !has_header(q->fields, q->n, MK_STR("Content-Length")))
        mk_buf_addf(out, "Content-Length: %zu\r\n", q->content.len);
    for (size_t i = 0; i < q->n; i++)
        mk_buf_addf(out, "%.*s: %.*s\r\n", MK_STR_ARG(q->fields[i].name), MK_STR_ARG(q->fields[i].value));
    mk_buf_add(out, MK_STR("\r\n"));
    mk_buf_add(out, q->content);
    return out->failed ? -ENOMEM : 0;
}

static mk_err write_http2_request(struct mk_test_client *p, const struct mk_http2_client_request *q,
                                  struct mk_buf *out)
{
    if (!p->client)
        p->client = p->http2->create();
    return p->client ? p->http2->ask(p->client, q, out) : -ENOMEM;
}

static mk_err send_request(struct mk_test_client *p, const struct mk_http2_client_request *q)
{
    struct mk_buf text = mk_buf_growing(q->content.len + (1 << 20));
    if (!is_request_line_word(q->method) || !is_request_line_word(q->target) ||
        !are_valid_headers(q->fields, q->n))
        return -EINVAL;
    mk_err e = !p->conn || p->is_shut ? mk_test_client_reconnect(p) : 0;
    if (!e)
        e = p->http2 ? write_http2_request(p, q, &text) : write_http1_request(q, &text);
    if (!e)
        e = mk_test_client_send(p, mk_buf_str(&text));
    mk_buf_free(&text);
    return e;
}

/* ---- Reading ---- */

static void store_head(struct mk_test_client *p, const struct mk_response_head *head,
                       struct mk_test_client_response *answer)
{
    answer->status = head->status;
    for (size_t i = 0; i < head->fields.n; i++) {
        const struct mk_header_field *f = &head->fields.at[i];
        mk_buf_addf(&p->head, "%.*s: %.*s\r\n", MK_STR_ARG(f->name), MK_STR_ARG(f->value));
    }
}

/* Processes received data. 1: the response is complete; 0: it is incomplete. */
static int parse_http1_response(struct mk_test_client *p, struct mk_response_parser *reply,
                                struct mk_test_client_response *answer)
{
    mk_str in = mk_buf_str(&p->received), data;
    enum mk_response_parser_event step;
    while ((step = mk_response_parser_next(reply, &in, &data)) == MK_RESPONSE_PARSER_HEAD ||
           step == MK_RESPONSE_PARSER_DATA || step == MK_RESPONSE_PARSER_TRAILERS)
        if (step == MK_RESPONSE_PARSER_HEAD && reply->head.status >= 200)
            store_head(p, &reply->head, answer);
        else if (step == MK_RESPONSE_PARSER_DATA)
            mk_buf_add(&p->content, data);
    mk_buf_consume(&p->received, p->received.len - in.len);
    if (step == MK_RESPONSE_PARSER_ERROR)
        return -EBADMSG;
    if (p->head.failed || p->content.failed)
        return -ENOMEM;
    return step == MK_RESPONSE_PARSER_END;
}

static int parse_http2_response(struct mk_test_client *p, struct mk_test_client_response *answer)
{
    struct mk_buf more = mk_buf_growing(1 << 30);
    struct mk_http2_client_response a = {.status = answer->status, .head = &p->head, .content = &p->content};
    mk_str in = mk_buf_str(&p->received);
    int done = p->http2->hear(p->client, &in, &more, &a);
    answer->status = a.status;
    mk_buf_consume(&p->received, p->received.len - in.len);
    if (done >= 0 && more.len && p->conn) {
        mk_err e = mk_test_client_send(p, mk_buf_str(&more));
        done = e ? e : done;
    }
    mk_buf_free(&more);
    return done;
}

static int wait_for_response(struct mk_test_client *p, struct mk_response_parser *reply,
                             struct mk_test_client_response *answer)
{
    uint64_t until = mk_clock_ms() + PATIENCE_MS;
    int done;
    while ((done = p->http2 ? parse_http2_response(p, answer) : parse_http1_response(p, reply, answer)) ==
           0) {
        uint64_t now = mk_clock_ms();
        if (!p->conn || p->is_shut)
            return !p->http2 && mk_response_parser_eof(reply) == MK_RESPONSE_PARSER_END ? 1 : -ECONNRESET;
        if (now >= until)
            return -ETIMEDOUT;
        int e = mk_test_client_step(p, (uint32_t)(until - now));
        if (e < 0)
            return e;
    }
    return done;
}

int mk_test_client_request(struct mk_test_client *p, const char *method, const char *target,
                           const struct mk_header *fields, size_t n, mk_str content,
                           struct mk_test_client_response *answer)
{
    int before MK_KEEP_ERRNO = errno;
    struct mk_header_field buf[MK_HEADERS_MAX];
    struct mk_response_parser reply;
    if (answer)
        *answer = (struct mk_test_client_response){0};
    if (!mk_handle_is_valid(p) || !answer || !method || !target || (n && !fields))
        return -EINVAL;
    if (!p->server || p->server->phase != MK_SERVER_RUNNING)
        return -ESHUTDOWN;
    if (mk_lib_worker_is_in_call(p->server))
        return -EBUSY;
    mk_buf_clear(&p->head);
    mk_buf_clear(&p->content);
    const struct mk_http2_client_request q = {.method = mk_str_from_c(method),
                                              .target = mk_str_from_c(target),
                                              .fields = fields,
                                              .n = n,
                                              .content = content};
    mk_err e = send_request(p, &q);
    if (e)
        return e;
    mk_response_parser_init(&reply,
                            (struct mk_response_parser_options){.head = mk_str_eq(q.method, MK_STR("HEAD"))},
                            buf, MK_HEADERS_MAX);
    int done = wait_for_response(p, &reply, answer);
    mk_response_parser_fini(&reply);
    if (done < 0 && p->http2 && p->conn) /* otherwise the next request would read the rest of this response */
        mk_conn_close(p->conn, MK_OUTCOME_CLIENT_ABORTED);
    answer->headers = mk_buf_str(&p->head);
    answer->body = mk_buf_str(&p->content);
    return done < 0 ? done : 0;
}

mk_str mk_test_client_header(const struct mk_test_client_response *answer, mk_str name)
{
    mk_str rest = answer->headers;
    while (rest.len) {
        mk_str value = mk_str_cut(&rest, '\n'), key = mk_str_cut(&value, ':');
        if (mk_str_eq_nocase(key, name))
            return mk_str_trim(mk_str_first(value, value.len - (value.len > 0)));
    }
    return MK_STR_NULL;
}
