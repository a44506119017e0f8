/* SPDX-License-Identifier: Apache-2.0 */
#include "response.h"

#include <errno.h>

#include <monkey/cgi.h>

/* ---- Body ---- */

static ssize_t read_buffered_body(struct cgi_exchange *c, char *buf, size_t cap)
{
    mk_str rest = mk_str_first(mk_str_skip(mk_buf_str(&c->head), c->from), cap);
    memcpy(buf, rest.p, rest.len);
    c->from += rest.len;
    if (c->from == c->head.len) {
        mk_buf_free(&c->head);
        c->from = 0;
    }
    return (ssize_t)rest.len;
}

static ssize_t abort_body(struct cgi_exchange *c, int error, const char *message)
{
    mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: response aborted after %llu bytes: %s",
                   MK_STR_ARG(c->script.file), (unsigned long long)c->made, message);
    cgi_exchange_stop(c);
    return error;
}

static ssize_t read_script_output(struct cgi_exchange *c, char *buf, size_t cap)
{
    int input = cgi_stdin_copy_body(&c->input, c->request, c->process);
    if (input < 0)
        return abort_body(c, input, "incomplete request body");
    ssize_t n = cgi_process_read(c->process, buf, cap);
    if (n == -EAGAIN)
        cgi_exchange_wait_for_output(c, input);
    else if (n == 0)
        c->at_end = true;
    else if (n > 0)
        cgi_exchange_set_timer(c, 0, "MaxRunTime");
    return n;
}

static ssize_t read_body(void *ctx, char *buf, size_t cap)
{
    struct cgi_exchange *c = ctx;
    if (c->phase.current != CGI_CONTENT)
        return -EPIPE;
    if (c->late)
        return abort_body(c, -ETIMEDOUT, c->late_why);
    ssize_t n = c->head.len ? read_buffered_body(c, buf, cap)
                : c->at_end ? 0
                            : read_script_output(c, buf, cap);
    if (n > 0)
        c->made += (uint64_t)n;
    if (c->settings->output && c->made > c->settings->output)
        return abort_body(c, -EFBIG, "the body exceeds MaxOutput");
    if (n == 0 && c->length >= 0 && c->made < (uint64_t)c->length)
        return abort_body(c, -EIO, "the body is shorter than its Content-Length");
    return n;
}

static void close_body(void *ctx)
{
    cgi_exchange_stop(ctx);
}

static const struct mk_body_source_ops content_ops = {.read = read_body, .close = close_body};

/* ---- A complete head ---- */

static bool add_script_headers(struct cgi_exchange *c, struct mk_response *response)
{
    mk_str rest = mk_str_first(mk_buf_str(&c->head), c->from), name, value;
    while (mk_cgi_head_next(&rest, &name, &value))
        if (mk_response_add_header(response, name, value) == -ENOMEM)
            return false;
    if (!c->route || !c->route->type.p)
        return true;
    return mk_response_add_default(response, MK_STR("Content-Type"), c->route->type) != -ENOMEM;
}

/* Sets the body length if the output has ended and its length is therefore known. */
static void set_length_if_ended(struct cgi_exchange *c)
{
    if (c->at_end && c->length < 0 && !c->bare)
        c->length = (int64_t)(c->head.len - c->from);
}

static enum mk_verdict respond_with_body(struct cgi_exchange *c, struct mk_response *response,
                                         const struct mk_cgi_head *h)
{
    uint64_t kept = c->head.len - c->from;
    c->bare = mk_request_method(c->request) == MK_METHOD_HEAD || h->status == 204 || h->status == 304;
    c->length = h->length;
    if (c->at_end && !c->bare && h->length > 0 && kept < (uint64_t)h->length)
        return cgi_exchange_script_error(c, response, 502, "the body is shorter than its Content-Length",
                                         MK_STR_NULL);
    if (c->settings->output && h->length > 0 && (uint64_t)h->length > c->settings->output)
        return cgi_exchange_script_error(c, response, 502, "the Content-Length exceeds MaxOutput",
                                         MK_STR_NULL);
    set_length_if_ended(c);
    if (!add_script_headers(c, response) || mk_response_set_status(response, h->status) != 0)
        return cgi_exchange_respond_error(c, response, 503);
    if (c->from == c->head.len)
        mk_buf_free(&c->head);
    cgi_exchange_move(c, CGI_CONTENT);
    cgi_exchange_set_timer(c, 0, "MaxRunTime");
    int e =
        mk_response_set_body_source(response, &content_ops, c, c->length < 0 ? MK_LENGTH_UNKNOWN : c->length);
    return e ? cgi_exchange_respond_error(c, response, 503) : MK_DONE;
}

static enum mk_verdict internal_redirect(struct cgi_exchange *c, struct mk_response *response,
                                         const struct mk_cgi_head *h)
{
    int e = mk_request_rewrite(c->request, h->location);
    if (e == -EINVAL)
        return cgi_exchange_script_error(c, response, 502, "invalid Location", h->location);
    if (e)
        return cgi_exchange_respond_error(c, response, 503);
    cgi_exchange_move(c, CGI_CONTENT);
    c->bare = true; /* the script's output is not part of the new response */
    cgi_exchange_stop(c);
    return MK_REWRITTEN;
}

static enum mk_verdict apply_script_head(struct cgi_exchange *c, struct mk_response *response, size_t len)
{
    struct mk_cgi_head h;
    c->from = len;
    if (!mk_cgi_head_read(&h, mk_str_first(mk_buf_str(&c->head), len)))
        return cgi_exchange_script_error(c, response, 502, h.error,
                                         h.error_line.p ? h.error_line : MK_STR(""));
    return h.is_local_redirect ? internal_redirect(c, response, &h) : respond_with_body(c, response, &h);
}

/* Forwards the HTTP response of the script unchanged; the server parses only its status line. */
static enum mk_verdict respond_raw(struct cgi_exchange *c, struct mk_response *response, unsigned status)
{
    cgi_exchange_move(c, CGI_CONTENT);
    c->length = -1;
    (void)mk_response_set_status(response, status); /* for logs, which expect a status of at least 200 */
    cgi_exchange_set_timer(c, 0, "MaxRunTime");
    int e = mk_response_set_raw_source(response, &content_ops, c);
    return e ? cgi_exchange_respond_error(c, response, e == -EOPNOTSUPP ? 505 : 503) : MK_DONE;
}

/* ---- Starting the response ---- */

static bool begin_raw_response(struct cgi_exchange *c, struct mk_response *response, mk_str text,
                               enum mk_verdict *verdict)
{
    unsigned status = 0;
    int r = mk_cgi_head_status_line(text, &status);
    if (r == 0)
        return false;
    *verdict = r < 0 ? cgi_exchange_script_error(c, response, 502, "no status line",
                                                 mk_str_first(text, mk_str_find(text, '\n')))
                     : respond_raw(c, response, status);
    return true;
}

bool cgi_response_begin(struct cgi_exchange *c, struct mk_response *response, enum mk_verdict *verdict)
{
    mk_str text = mk_buf_str(&c->head);
    if (c->script.speaks_http && mk_request_version(c->request) < 20)
        return begin_raw_response(c, response, text, verdict);
    size_t len = mk_cgi_head_end(text, c->seen);
    c->seen = text.len;
    if (!len)
        return false;
    *verdict = apply_script_head(c, response, len);
    return true;
}
