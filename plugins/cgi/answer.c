/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <errno.h>

#include <monkey/cgi.h>

/* ---- Content ---- */

static ssize_t pull_kept(struct cgi_call *c, char *room, size_t cap)
{
    mk_str rest = mk_str_first(mk_str_skip(mk_buf_str(&c->head), c->from), cap);
    memcpy(room, rest.p, rest.len);
    c->from += rest.len;
    if (c->from == c->head.len) {
        mk_buf_free(&c->head);
        c->from = 0;
    }
    return (ssize_t)rest.len;
}

static ssize_t give_up(struct cgi_call *c, int error, const char *why)
{
    mk_request_log(c->request, MK_LOG_ERROR, "cgi: %.*s: its answer was cut off after %llu bytes: %s",
                   MK_STR_ARG(c->script.file), (unsigned long long)c->made, why);
    cgi_call_stop(c);
    return error;
}

static ssize_t pull_script(struct cgi_call *c, char *room, size_t cap)
{
    int input = cgi_input_pump(&c->input, c->request, c->process);
    if (input < 0)
        return give_up(c, input, "the content of the request ended too early");
    ssize_t n = cgi_process_read(c->process, room, cap);
    if (n == -EAGAIN)
        cgi_call_wait_for_output(c, input);
    else if (n == 0)
        c->at_end = true;
    else if (n > 0)
        cgi_call_set_timer(c, 0, "MaxTime");
    return n;
}

static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct cgi_call *c = ctx;
    if (c->phase != CGI_CONTENT)
        return -EPIPE;
    if (c->late)
        return give_up(c, -ETIMEDOUT, c->late_why);
    ssize_t n = c->head.len ? pull_kept(c, room, cap) : c->at_end ? 0 : pull_script(c, room, cap);
    if (n > 0)
        c->made += (uint64_t)n;
    if (c->settings->output && c->made > c->settings->output)
        return give_up(c, -EFBIG, "it is more than MaxOutput");
    if (n == 0 && c->length >= 0 && c->made < (uint64_t)c->length)
        return give_up(c, -EIO, "it is shorter than its Content-Length");
    return n;
}

static void on_close(void *ctx)
{
    cgi_call_stop(ctx);
}

static const struct mk_body_source_ops content_ops = {.pull = pull, .close = on_close};

/* ---- A complete head ---- */

static bool add_fields(struct cgi_call *c, struct mk_response *response)
{
    mk_str rest = mk_str_first(mk_buf_str(&c->head), c->from), name, value;
    bool has_type = !c->route || !c->route->type.p;
    while (mk_cgi_head_next(&rest, &name, &value)) {
        has_type |= mk_str_eq_nocase(name, MK_STR("Content-Type"));
        if (mk_response_add_header(response, name, value) == -ENOMEM)
            return false;
    }
    return has_type || mk_response_add_header(response, MK_STR("Content-Type"), c->route->type) != -ENOMEM;
}

/* The output has ended already: its length is known. */
static void measure(struct cgi_call *c)
{
    if (c->at_end && c->length < 0 && !c->bare)
        c->length = (int64_t)(c->head.len - c->from);
}

static enum mk_verdict answer(struct cgi_call *c, struct mk_response *response, const struct mk_cgi_head *h)
{
    uint64_t kept = c->head.len - c->from;
    c->bare = mk_request_method(c->request) == MK_METHOD_HEAD || h->status == 204 || h->status == 304;
    c->length = h->length;
    if (c->at_end && !c->bare && h->length > 0 && kept < (uint64_t)h->length)
        return cgi_call_blame(c, response, 502, "it is shorter than its Content-Length", MK_STR_NULL);
    if (c->settings->output && h->length > 0 && (uint64_t)h->length > c->settings->output)
        return cgi_call_blame(c, response, 502, "its Content-Length is more than MaxOutput", MK_STR_NULL);
    measure(c);
    if (!add_fields(c, response) || mk_response_set_status(response, h->status) != 0)
        return cgi_call_refuse(c, response, 503);
    if (c->from == c->head.len)
        mk_buf_free(&c->head);
    c->phase = CGI_CONTENT;
    cgi_call_set_timer(c, 0, "MaxTime");
    int e =
        mk_response_set_body_source(response, &content_ops, c, c->length < 0 ? MK_LENGTH_UNKNOWN : c->length);
    return e ? cgi_call_refuse(c, response, 503) : MK_DONE;
}

static enum mk_verdict redirect(struct cgi_call *c, struct mk_response *response, const struct mk_cgi_head *h)
{
    int e = mk_request_rewrite(c->request, h->location);
    if (e == -EINVAL)
        return cgi_call_blame(c, response, 502, "its Location leads nowhere", h->location);
    if (e)
        return cgi_call_refuse(c, response, 503);
    c->phase = CGI_CONTENT;
    c->bare = true; /* the script adds nothing to this */
    cgi_call_stop(c);
    return MK_REWRITTEN;
}

static enum mk_verdict read_head(struct cgi_call *c, struct mk_response *response, size_t len)
{
    struct mk_cgi_head h;
    c->from = len;
    if (!mk_cgi_head_read(&h, mk_str_first(mk_buf_str(&c->head), len)))
        return cgi_call_blame(c, response, 502, h.problem, h.where.p ? h.where : MK_STR(""));
    return h.is_local_redirect ? redirect(c, response, &h) : answer(c, response, &h);
}

/* The script speaks HTTP itself; the server knows only its status line. */
static enum mk_verdict let_speak(struct cgi_call *c, struct mk_response *response, unsigned status)
{
    c->phase = CGI_CONTENT;
    c->length = -1;
    (void)mk_response_set_status(response, status); /* for logs, which know none below 200 */
    cgi_call_set_timer(c, 0, "MaxTime");
    int e = mk_response_set_raw_source(response, &content_ops, c);
    return e ? cgi_call_refuse(c, response, e == -EOPNOTSUPP ? 505 : 503) : MK_DONE;
}

/* ---- The beginning ---- */

static bool begin_raw(struct cgi_call *c, struct mk_response *response, mk_str text, enum mk_verdict *verdict)
{
    unsigned status = 0;
    int r = mk_cgi_head_status_line(text, &status);
    if (r == 0)
        return false;
    *verdict = r < 0 ? cgi_call_blame(c, response, 502, "no status line",
                                      mk_str_first(text, mk_str_find(text, '\n')))
                     : let_speak(c, response, status);
    return true;
}

bool cgi_answer_begin(struct cgi_call *c, struct mk_response *response, enum mk_verdict *verdict)
{
    mk_str text = mk_buf_str(&c->head);
    if (c->script.speaks_http && mk_request_version(c->request) < 20)
        return begin_raw(c, response, text, verdict);
    size_t len = mk_cgi_head_end(text, c->seen);
    c->seen = text.len;
    if (!len)
        return false;
    *verdict = read_head(c, response, len);
    return true;
}
