/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/request_receive.h"

#include <monkey/text.h>

#include "upstream/conn.h"
#include "upstream/freelist.h"
#include "upstream/pool.h"
#include "upstream/request_send.h"
#include "upstream/request_state.h"

enum { LAST_MAX = 4096 };

/* ---- Beginnings and ends ---- */

static void init_parser(struct mk_upstream_request *c, struct mk_response_parser_options request)
{
    /* Each call supplies the memory for headers: see mk_upstream_request_receive_head(). */
    mk_response_parser_init(&c->input.reply, request, NULL, MK_UPSTREAM_REQUEST_RECEIVE_FIELDS);
    if (c->codec == &mk_codec_fastcgi)
        mk_fcgi_init(&c->input.fcgi);
    c->input.error = 0;
    c->input.problem = NULL;
    c->in = c->data = mk_str_of("", 0);
}

void mk_upstream_request_receive_init(struct mk_upstream_request *c,
                                      const struct mk_upstream_request_options *options)
{
    init_parser(c, (struct mk_response_parser_options){.head = mk_str_eq(options->method, MK_STR("HEAD")),
                                                       .upgrade = options->upgrade.len > 0,
                                                       .cgi = c->codec->is_cgi});
    c->trailers = mk_buf_growing(MK_RESPONSE_PARSER_TRAILERS_MAX);
    c->named = mk_buf_growing(2 * MK_RESPONSE_PARSER_HEAD_MAX);
    c->length = MK_LENGTH_UNKNOWN;
}

void mk_upstream_request_receive_reset(struct mk_upstream_request *c)
{
    mk_response_parser_fini(&c->input.reply);
    c->input.record = (struct mk_codec_record){0};
    init_parser(c, c->input.reply.request);
}

void mk_upstream_request_receive_fini(struct mk_upstream_request *c)
{
    mk_response_parser_fini(&c->input.reply);
    mk_buf_free(&c->trailers);
    mk_buf_free(&c->named);
    mk_freelist_dealloc(c->blocks, c->fields, c->fields_cap);
}

/* ---- From the connection ---- */

/* Reads from the connection. 1: c->in holds the bytes read; 0: EOF; -EAGAIN; or an error. */
static int read_from_conn(struct mk_upstream_request *c, char *buf, size_t cap)
{
    ssize_t n = mk_upstream_conn_is_readable(c->conn) ? mk_upstream_conn_read(c->conn, buf, cap) : -EAGAIN;
    if (n == -EAGAIN)
        return -EAGAIN;
    if (n <= 0) {
        c->problem = mk_upstream_conn_read_error_text(c->conn);
        return (int)n;
    }
    mk_upstream_conn_mark_first_byte(c->conn);
    c->in = mk_str_of(buf, (size_t)n);
    return 1;
}

/* Are there bytes after the response? They could be an unsolicited response. */
static bool has_extra_bytes(struct mk_upstream_request *c)
{
    char byte;
    return c->in.len ||
           (mk_upstream_conn_is_readable(c->conn) && mk_upstream_conn_read(c->conn, &byte, 1) != -EAGAIN);
}

/* Called when the response is complete. */
static void finish_response(struct mk_upstream_request *c)
{
    const struct mk_response_parser *r = &c->input.reply;
    bool keeps = c->codec->keeps && (c->codec->is_cgi || r->head.keep_alive) &&
                 !mk_upstream_conn_has_eof(c->conn) && c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENT &&
                 !has_extra_bytes(c);
    mk_upstream_request_state_release(c, keeps ? MK_UPSTREAM_CONN_KEEP : MK_UPSTREAM_CONN_CLOSE);
    mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_DONE);
}

static void fail_response(struct mk_upstream_request *c, int error, const char *problem)
{
    mk_upstream_conn_set_error(c->conn, error, problem);
    c->reset_code = mk_upstream_conn_reset_code(c->conn);
    mk_upstream_request_state_fail(c, error, problem,
                                   error == -ENOMEM ? MK_UPSTREAM_CONN_CLOSE : MK_UPSTREAM_CONN_FAILED);
}

/* Parses the bytes read. *data: a piece of the body or of the trailers. */
static enum mk_response_parser_event parse_response(struct mk_upstream_request *c, mk_str *data)
{
    return c->codec->read ? c->codec->read(&c->input, &c->in, data)
                          : mk_codec_read_response(&c->input, &c->in, data);
}

static enum mk_response_parser_event parse_eof(struct mk_upstream_request *c)
{
    return c->codec->read_end ? c->codec->read_end(&c->input) : mk_codec_read_eof(&c->input);
}

/* Finds the next body piece in the bytes read, and stores it in c->data. False: there is none, or the
 * response has ended or failed. */
static bool next_body_piece(struct mk_upstream_request *c)
{
    for (;;) {
        mk_str piece = MK_STR_NULL;
        switch (parse_response(c, &piece)) {
        case MK_RESPONSE_PARSER_DATA:
            c->data = piece;
            return true;
        case MK_RESPONSE_PARSER_TRAILERS:
            mk_buf_add(&c->trailers, piece);
            if (!c->trailers.failed)
                break;
            fail_response(c, -ENOMEM, "no memory for the trailers of the response");
            return false;
        case MK_RESPONSE_PARSER_MORE:
            return false;
        case MK_RESPONSE_PARSER_END:
            finish_response(c);
            return false;
        case MK_RESPONSE_PARSER_HEAD: /* already received */
        case MK_RESPONSE_PARSER_ERROR:
            fail_response(c, c->input.error ? c->input.error : -EPROTO, c->input.problem);
            return false;
        }
    }
}

/* ---- The head ---- */

/* Is it a connection or framing header (RFC 9110, section 7.6.1), or the Status header of CGI? */
static bool is_omitted_header(const struct mk_upstream_request *c, const struct mk_headers *fields,
                              const struct mk_header_field *f)
{
    if (mk_header_is_hop_by_hop(f->id))
        return true;
    if (f->id == MK_HEADER_STATUS)
        return c->codec->is_cgi;
    return c->input.reply.head.names_fields && mk_headers_has_token(fields, MK_HEADER_CONNECTION, f->name);
}

/* A run of consecutive header lines that are already canonical (see is_canonical_line()) and are therefore
 * copied in one piece. */
struct header_run {
    const char *from, *to; /* source */
    char *at;              /* destination */
};

static void flush_header_run(struct header_run *r)
{
    size_t len = (size_t)(r->to - r->from);
    if (len)
        memcpy(r->at, r->from, len);
    r->at += len;
    r->from = r->to;
}

/* Is the line exactly "Name: value" and CRLF? The bytes read end with an empty line, so the byte after the
 * line is readable. */
static bool is_canonical_line(const struct mk_header_field *f)
{
    const char *end = f->value.p + f->value.len;
    return f->value.p == f->name.p + f->name.len + 2 && f->value.p[-1] == ' ' && end[0] == '\r' &&
           end[1] == '\n';
}

static struct mk_header extend_header_run(struct header_run *r, const struct mk_header_field *f)
{
    if (f->name.p != r->to) {
        flush_header_run(r);
        r->from = f->name.p;
    }
    char *at = r->at + (f->name.p - r->from);
    r->to = f->value.p + f->value.len + 2;
    return (struct mk_header){mk_str_of(at, f->name.len), mk_str_of(at + f->name.len + 2, f->value.len)};
}

static struct mk_header append_header_line(struct header_run *r, const struct mk_header_field *f)
{
    size_t len = f->name.len + f->value.len + 4;
    flush_header_run(r);
    struct mk_buf line = mk_buf_fixed(r->at, len);
    mk_header_append(&line, f->name, f->value);
    char *at = r->at;
    r->at += len;
    return (struct mk_header){mk_str_of(at, f->name.len), mk_str_of(at + f->name.len + 2, f->value.len)};
}

/* Copies the headers that are not omitted to `kept`, followed by their text. Returns the end of the text. */
static char *copy_headers(struct mk_upstream_request *c, struct mk_header *kept)
{
    const struct mk_headers *fields = &c->input.reply.head.fields;
    char *begin = (char *)(kept + fields->n);
    struct header_run r = {.at = begin};
    c->n_fields = 0;
    for (unsigned i = 0; i < fields->n; i++) {
        const struct mk_header_field *f = &fields->at[i];
        if (!is_omitted_header(c, fields, f))
            kept[c->n_fields++] = is_canonical_line(f) ? extend_header_run(&r, f) : append_header_line(&r, f);
    }
    flush_header_run(&r);
    c->text = mk_str_of(begin, (size_t)(r.at - begin));
    return r.at;
}

/* Copies the names in Connection, because trailers with these names are hop-by-hop as well. False: out of
 * memory. */
static bool copy_connection_options(struct mk_upstream_request *c)
{
    mk_str value;
    mk_buf_clear(&c->named);
    if (!c->input.reply.head.names_fields)
        return true;
    for (unsigned at = 0; mk_headers_next(&c->input.reply.head.fields, MK_HEADER_CONNECTION, &at, &value);) {
        mk_buf_add(&c->named, value);
        mk_buf_add_char(&c->named, ',');
    }
    return !c->named.failed;
}

/* Copies the headers that are not omitted, and the data after the head, because the bytes read are in the
 * caller's buffer. */
static bool copy_head(struct mk_upstream_request *c)
{
    const struct mk_headers *fields = &c->input.reply.head.fields;
    size_t size = c->in.len;
    for (unsigned i = 0; i < fields->n; i++)
        size += sizeof(struct mk_header) + fields->at[i].name.len + fields->at[i].value.len + 4;
    size_t cap = size + 1;
    struct mk_header *kept = mk_freelist_alloc(c->blocks, &cap);
    if (!kept || !copy_connection_options(c)) {
        mk_freelist_dealloc(c->blocks, kept, cap);
        return false;
    }
    char *at = copy_headers(c, kept);
    if (c->in.len)
        memcpy(at, c->in.p, c->in.len);
    c->in.p = at;
    mk_freelist_dealloc(c->blocks, c->fields, c->fields_cap);
    c->fields = kept;
    c->fields_cap = cap;
    return true;
}

static int64_t response_length(const struct mk_upstream_request *c)
{
    const struct mk_response_head *h = &c->input.reply.head;
    bool is_empty = h->body == MK_RESPONSE_BODY_NONE && !c->input.reply.request.head && h->status != 304;
    if (h->has_length)
        return (int64_t)h->length;
    return is_empty ? 0 : MK_LENGTH_UNKNOWN;
}

/* Does the response switch to the protocol that we requested, after the whole request was sent? */
static bool is_requested_upgrade(const struct mk_upstream_request *c)
{
    return c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENT &&
           mk_headers_has_token(&c->input.reply.head.fields, MK_HEADER_UPGRADE,
                                mk_str_of(c->upgrade, c->upgrade_len));
}

/* Drops the held body: the server responded without asking for it and will no longer read it. */
static void drop_held_body(struct mk_upstream_request *c)
{
    if (c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_HELD)
        mk_upstream_request_state_end_output(c, -EPIPE,
                                             "the server has answered without the content of the request");
}

/* Accepts a complete head. Returns 0 for the final response, 1 for an interim response, or an error. */
static int accept_head(struct mk_upstream_request *c)
{
    unsigned status = c->input.reply.head.status;
    c->problem = "101 without a requested protocol";
    if (status == 101 && !is_requested_upgrade(c))
        return -EPROTO;
    c->problem = "a Sec-WebSocket-Accept that does not match the key of the request";
    mk_str key = mk_str_of(c->upgrade + c->upgrade_len, c->accept_len);
    bool has_key = key.len && c->codec == &mk_codec_http; /* HTTP/2 has no key */
    if (status == 101 && has_key && !mk_codec_http_has_accept_key(&c->input.reply.head.fields, key))
        return -EPROTO;
    mk_upstream_conn_set_status(c->conn, status);
    c->problem = "no memory for the head of the response";
    c->length = response_length(c);
    c->is_local_redirect = c->codec->is_cgi && mk_response_head_is_local_redirect(&c->input.reply.head);
    if (!copy_head(c))
        return -ENOMEM;
    if (status == 101) {
        mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_UPGRADED);
    } else if (status < 200) {
        mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_NOTHING);
        return 1;
    } else {
        drop_held_body(c);
        mk_pool_count_status(c->conn, status);
        mk_upstream_request_state_move(c, MK_UPSTREAM_REQUEST_CONTENT);
        if (mk_response_parser_has_all_body(&c->input.reply))
            (void)next_body_piece(c); /* no body: this is the end */
    }
    mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_NOTHING);
    return 0;
}

/* Starts the timeout for the response head, unless more of the request can be sent. */
static void start_head_timer(struct mk_upstream_request *c)
{
    if (c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_SENT ||
        c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_BROKEN ||
        c->output.current == MK_UPSTREAM_REQUEST_OUTPUT_HELD)
        mk_upstream_request_timer_set_head(c);
}

/* Yields to other connections when the server keeps sending bytes that complete no head and hold no body
 * data. */
static int yield_iteration(struct mk_upstream_request *c)
{
    mk_upstream_request_timer_run_later(c);
    return -EAGAIN;
}

/* Reads more of the head. 1: continue; otherwise a result of mk_upstream_request_receive_head(). */
static int read_more_of_head(struct mk_upstream_request *c, char *buf, size_t cap)
{
    int n = read_from_conn(c, buf, cap);
    if (n == -EAGAIN)
        start_head_timer(c);
    else if (n > 0)
        mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_NOTHING);
    if (n)
        return n;
    (void)parse_eof(c); /* EOF cannot be a valid end of the head */
    c->problem = c->input.problem;
    return c->input.error;
}

/* Has the server closed an idle connection with a 408 (RFC 9110, section 15.5.9) while the request was in
 * transit? The request is resent over a new connection; if that is not possible, the caller gets the 408. */
static bool is_idle_close_408(const struct mk_upstream_request *c)
{
    return c->input.reply.head.status == 408 && c->codec == &mk_codec_http &&
           mk_upstream_conn_was_reused(c->conn) && c->is_safe_to_repeat && !c->content.is_gone;
}

static int reject_idle_close_408(struct mk_upstream_request *c)
{
    c->problem = "the server closed the connection";
    return -ESTALE;
}

static int parse_head(struct mk_upstream_request *c)
{
    char buf[MK_UPSTREAM_REQUEST_RECEIVE_ROOM];
    unsigned rounds = 0;
    int e = 1;
    while (e > 0) {
        switch ((int)parse_response(c, &c->data)) {
        case MK_RESPONSE_PARSER_HEAD:
            if (is_idle_close_408(c))
                return reject_idle_close_408(c);
            if (c->input.reply.head.status != 100)
                return accept_head(c);
            mk_upstream_request_send_held_body(c);
            break;
        case MK_RESPONSE_PARSER_MORE:
            e = rounds++ < MK_UPSTREAM_REQUEST_RECEIVE_ROUNDS ? read_more_of_head(c, buf, sizeof buf)
                                                              : yield_iteration(c);
            break;
        default: /* no other event precedes the head */
            c->problem = c->input.problem;
            e = c->input.error ? c->input.error : -EPROTO;
        }
    }
    return e;
}

/* The bytes read are parsed before this function returns: the buffer is on the stack of parse_head(), and the
 * header fields are on the stack of this function. */
int mk_upstream_request_receive_head(struct mk_upstream_request *c)
{
    struct mk_header_field fields[MK_UPSTREAM_REQUEST_RECEIVE_FIELDS];
    c->input.reply.head.fields.at = fields;
    int e = parse_head(c);
    c->input.reply.head.fields.at = NULL;
    return e;
}

/* ---- Body ---- */

/* Moves body data to the buffer, where the data may already be, and removes the framing. */
static size_t copy_body(struct mk_upstream_request *c, char *buf, size_t cap)
{
    size_t len = 0;
    while (c->state.current == MK_UPSTREAM_REQUEST_CONTENT &&
           (c->data.len ? len < cap : next_body_piece(c))) {
        mk_str part = mk_str_first(c->data, cap - len);
        if (part.len)
            memmove(buf + len, part.p, part.len);
        c->data = mk_str_skip(c->data, part.len);
        len += part.len;
    }
    return len;
}

/* Called when the server has closed its sending side. */
static void finish_body_at_eof(struct mk_upstream_request *c)
{
    if (parse_eof(c) == MK_RESPONSE_PARSER_END)
        finish_response(c);
    else
        fail_response(c, c->input.error, c->input.problem);
}

/* Does the remaining body fit exactly in `space`, so that this is the last read? */
static bool is_last_read(const struct mk_upstream_request *c, size_t space)
{
    return c->codec == &mk_codec_http && space <= LAST_MAX &&
           mk_response_parser_body_left(&c->input.reply) == space;
}

/* Reads into the buffer after `len` bytes of body data; returns the new length. The last short read asks for
 * one extra byte, which saves has_extra_bytes() a system call. */
static ssize_t read_body(struct mk_upstream_request *c, char *buf, size_t cap, size_t len)
{
    char last[LAST_MAX + 1];
    size_t want = cap - len;
    int n = is_last_read(c, want) ? read_from_conn(c, last, want + 1) : read_from_conn(c, buf + len, want);
    if (n == 1) {
        mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_NOTHING);
        len += copy_body(c, buf + len, cap - len);
        c->in = mk_str_of("", 0); /* all bytes read were parsed, or are discarded */
        return (ssize_t)len;
    }
    if (n == 0)
        finish_body_at_eof(c);
    else if (n != -EAGAIN)
        fail_response(c, n, c->problem);
    else if (len == 0)
        mk_upstream_request_timer_set(c, MK_UPSTREAM_REQUEST_AWAITS_PIECE);
    return n == -EAGAIN && len == 0 ? -EAGAIN : (ssize_t)len;
}

static ssize_t read_tunnel(struct mk_upstream_request *c, char *buf, size_t cap)
{
    mk_str part = mk_str_first(c->in, cap);
    if (part.len) {
        memcpy(buf, part.p, part.len);
        c->in = mk_str_skip(c->in, part.len);
        return (ssize_t)part.len;
    }
    int n = read_from_conn(c, buf, cap);
    if (n == 1) {
        n = (int)c->in.len;
        c->in = mk_str_of("", 0);
    } else if (n < 0 && n != -EAGAIN) {
        fail_response(c, n, c->problem);
    }
    return n;
}

ssize_t mk_upstream_request_receive_body(struct mk_upstream_request *c, char *buf, size_t cap)
{
    if (c->state.current == MK_UPSTREAM_REQUEST_UPGRADED)
        return read_tunnel(c, buf, cap);
    ssize_t n = (ssize_t)copy_body(c, buf, cap);
    for (unsigned round = 0; c->state.current == MK_UPSTREAM_REQUEST_CONTENT && (size_t)n < cap; round++) {
        n = read_body(c, buf, cap, (size_t)n);
        if (n)
            break;
        if (round == MK_UPSTREAM_REQUEST_RECEIVE_ROUNDS)
            return yield_iteration(c);
    }
    return n == 0 && c->state.current == MK_UPSTREAM_REQUEST_FAILED ? c->error : n;
}

/* Body data that arrived with the head is stored after the text of the headers; its framing is removed in
 * place. */
bool mk_upstream_request_receive_buffered(struct mk_upstream_request *c, mk_str *content)
{
    if (!c->in.len || c->data.len || (c->length == MK_LENGTH_UNKNOWN && !c->codec->is_cgi))
        return false;
    char *begin = (char *)c->fields + (c->in.p - (char *)c->fields);
    size_t len = 0;
    while (next_body_piece(c)) {
        memmove(begin + len, c->data.p, c->data.len);
        len += c->data.len;
        c->data.len = 0;
    }
    *content = mk_str_of(begin, len);
    if (c->state.current == MK_UPSTREAM_REQUEST_CONTENT)
        c->data = *content;
    return c->state.current == MK_UPSTREAM_REQUEST_DONE;
}
