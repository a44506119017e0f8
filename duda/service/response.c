/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the response. */
#include <errno.h>

#include "service/reserved_cookies.h"
#include "service/response.h"
#include "service/suspend.h"
#include "text/format.h"

enum {
    KEPT_MAX = 64 << 10,       /* longer bodies are streamed */
    RANGES_KEPT_MAX = 8 << 20, /* the same for bodies with byte ranges: a range needs the complete body */
    OUT_MAX = 1 << 30,         /* maximum size of one piece */
    INITIAL_SIZE = 1024,
};

int duda_status(struct duda_ctx *d, unsigned status)
{
    if (duda_head_is_final(d))
        return -EALREADY;
    return status ? mk_response_set_status(d->response, status) : -EINVAL;
}

/* Checks whether the service may set this header, and headers can still change. */
static int check_header_allowed(struct duda_ctx *d, const char *name, mk_str value)
{
    if (duda_head_is_final(d))
        return -EALREADY;
    bool is_cookie = mk_str_eq_nocase(mk_str_from_c(name), MK_STR("Set-Cookie"));
    return is_cookie ? duda_reserved_cookie_check_header(d, value) : 0;
}

int duda_header_set(struct duda_ctx *d, const char *name, mk_str value)
{
    int e = check_header_allowed(d, name, value);
    return e ? e : mk_response_set_header(d->response, mk_str_from_c(name), value);
}

int duda_response_add_header(struct duda_ctx *d, const char *name, mk_str value)
{
    if (duda_head_is_final(d))
        return -EALREADY;
    return mk_response_add_header(d->response, mk_str_from_c(name), value);
}

int duda_header_add(struct duda_ctx *d, const char *name, mk_str value)
{
    int e = check_header_allowed(d, name, value);
    return e ? e : duda_response_add_header(d, name, value);
}

int duda_content_type(struct duda_ctx *d, mk_str type)
{
    return duda_header_set(d, "Content-Type", type);
}

bool duda_response_is_set(struct duda_ctx *d)
{
    return d->output != DUDA_OUTPUT_NONE || mk_response_has_status(d->response) ||
           mk_response_length(d->response) != 0 || mk_response_is_file(d->response);
}

/* Waits until the client has received everything written so far. */
static int wait_until_sent(struct duda_ctx *d)
{
    int e = 0;
    d->output = DUDA_OUTPUT_STREAMED;
    while (d->out.len && !e)
        e = duda_suspend_until(d, DUDA_SUSPEND_FOR_OUTPUT);
    return e;
}

static bool must_stream(const struct duda_ctx *d)
{
    bool has_ranges = d->conditional & MK_CONDITIONAL_RANGES && d->output == DUDA_OUTPUT_BUFFERED;
    return d->out.len >= (has_ranges ? RANGES_KEPT_MAX : KEPT_MAX);
}

int duda_response_end_append(struct duda_ctx *d)
{
    if (d->out.failed)
        return -ENOMEM;
    if (d->output == DUDA_OUTPUT_NONE)
        d->output = DUDA_OUTPUT_BUFFERED;
    return d->out.len >= KEPT_MAX && must_stream(d) ? wait_until_sent(d) : 0;
}

/* Gives the handler an output buffer: the worker's spare one, which handlers reuse in turn, or a new one. */
static void init_output_buf(struct duda_ctx *d)
{
    struct mk_buf *spare = &d->worker_ctx->spare;
    d->out.p = spare->p;
    d->out.cap = spare->cap;
    d->out.max = OUT_MAX;
    spare->p = NULL;
    spare->cap = 0;
    if (!d->out.p)
        (void)mk_buf_reserve(&d->out, INITIAL_SIZE);
}

int duda_response_begin_append(struct duda_ctx *d)
{
    if (!d->out.max)
        init_output_buf(d);
    if (d->output == DUDA_OUTPUT_TUNNEL)
        return -EALREADY;
    return d->cancel_error ? duda_suspend_until(d, DUDA_SUSPEND_FOR_OUTPUT) : 0;
}

int duda_write(struct duda_ctx *d, mk_str text)
{
    int e = duda_response_begin_append(d);
    if (e)
        return e;
    mk_buf_add(&d->out, text);
    return duda_response_end_append(d);
}

int duda_puts(struct duda_ctx *d, const char *text)
{
    return duda_write(d, mk_str_from_c(text));
}

int duda_printf(struct duda_ctx *d, const char *fmt, ...)
{
    int e = duda_response_begin_append(d);
    if (e)
        return e;
    va_list args;
    va_start(args, fmt);
    duda_format_append(&d->out, fmt, args);
    va_end(args);
    return duda_response_end_append(d);
}

int duda_flush(struct duda_ctx *d)
{
    if (d->output == DUDA_OUTPUT_TUNNEL)
        return -EALREADY;
    bool begun = d->output == DUDA_OUTPUT_STREAMED;
    d->output = DUDA_OUTPUT_STREAMED;
    if (!begun && !d->out.len) /* only the headers */
        return duda_suspend_until(d, DUDA_SUSPEND_FOR_OUTPUT);
    return wait_until_sent(d);
}

int duda_response_reset(struct duda_ctx *d)
{
    if (duda_head_is_final(d) || d->output == DUDA_OUTPUT_TUNNEL)
        return -EALREADY;
    mk_buf_clear(&d->out);
    d->output = DUDA_OUTPUT_NONE;
    return mk_response_set_status(d->response, 0);
}

int duda_result(struct duda_ctx *d)
{
    return d->result;
}

void duda_set_result(struct duda_ctx *d, int result)
{
    d->result = result;
}

/* ---- The response as written so far ---- */

mk_str duda_response_header(struct duda_ctx *d, const char *name)
{
    return d->response ? mk_response_header(d->response, mk_str_from_c(name)) : MK_STR_NULL;
}

mk_str duda_response_body(struct duda_ctx *d)
{
    return d->out.len ? mk_str_of(d->out.p + d->out_at, d->out.len - d->out_at) : MK_STR_NULL;
}

bool duda_response_has_started(struct duda_ctx *d)
{
    return duda_head_is_final(d) || d->output == DUDA_OUTPUT_TUNNEL;
}
