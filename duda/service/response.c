/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the response. */
#include <errno.h>
#include <stdio.h>

#include "service/reserved_cookies.h"
#include "service/response.h"
#include "service/suspend.h"
#include "text/format.h"

enum {
    KEPT_MAX = 64 << 10, /* longer bodies are streamed */
    OUT_MAX = 1 << 30,   /* maximum size of one piece */
    FIRST_ROOM = 1024,
};

int duda_status(struct duda_ctx *d, unsigned status)
{
    int e = d->streams ? -EALREADY : mk_response_set_status(d->response, status);
    d->has_status |= !e;
    return e;
}

static bool is_header_name(const char *name, mk_str wanted)
{
    return mk_str_eq_nocase(mk_str_from_c(name), wanted);
}

/* May the service set this header, and is it not too late? */
static int check_header_allowed(const struct duda_ctx *d, const char *name, mk_str value)
{
    if (d->streams)
        return -EALREADY;
    return is_header_name(name, MK_STR("Set-Cookie")) ? duda_reserved_cookie_check_header(d, value) : 0;
}

int duda_header_set(struct duda_ctx *d, const char *name, mk_str value)
{
    int e = check_header_allowed(d, name, value);
    e = e ? e : mk_response_set_header(d->response, mk_str_from_c(name), value);
    d->typed |= !e && is_header_name(name, MK_STR("Content-Type"));
    return e;
}

int duda_response_add_header(struct duda_ctx *d, const char *name, mk_str value)
{
    if (d->streams)
        return -EALREADY;
    int e = mk_response_add_header(d->response, mk_str_from_c(name), value);
    d->typed |= !e && is_header_name(name, MK_STR("Content-Type"));
    return e;
}

int duda_header_add(struct duda_ctx *d, const char *name, mk_str value)
{
    int e = check_header_allowed(d, name, value);
    return e ? e : duda_response_add_header(d, name, value);
}

int duda_content_type(struct duda_ctx *d, const char *type)
{
    return duda_header_set(d, "Content-Type", mk_str_from_c(type));
}

int duda_response_set_type_nocopy(struct duda_ctx *d, mk_str type)
{
    if (d->streams || d->typed)
        return d->streams ? -EALREADY : mk_response_set_header(d->response, MK_STR("Content-Type"), type);
    int e = mk_response_add_header_nocopy(d->response, MK_STR("Content-Type"), type);
    d->typed = !e;
    return e;
}

/* Waits until the client has received everything written so far. */
static int wait_until_sent(struct duda_ctx *d)
{
    int e = 0;
    d->streams = true;
    while (d->out.len && !e)
        e = duda_suspend_until(d, DUDA_SUSPEND_FOR_OUTPUT);
    return e;
}

int duda_response_end_write(struct duda_ctx *d)
{
    if (d->out.failed)
        return -ENOMEM;
    d->said = true;
    return d->out.len >= KEPT_MAX ? wait_until_sent(d) : 0;
}

/* Handlers reuse one output buffer in turn. */
static void init_output_buf(struct duda_ctx *d)
{
    struct mk_buf *spare = &d->worker_ctx->spare;
    d->out.p = spare->p;
    d->out.cap = spare->cap;
    d->out.max = OUT_MAX;
    spare->p = NULL;
    spare->cap = 0;
    if (!d->out.p)
        (void)mk_buf_reserve(&d->out, FIRST_ROOM);
}

int duda_response_begin_write(struct duda_ctx *d)
{
    if (!d->out.max)
        init_output_buf(d);
    if (d->tunnels)
        return -EALREADY;
    return d->ended ? duda_suspend_until(d, DUDA_SUSPEND_FOR_OUTPUT) : 0;
}

int duda_write(struct duda_ctx *d, mk_str text)
{
    int e = duda_response_begin_write(d);
    if (e)
        return e;
    mk_buf_add(&d->out, text);
    return duda_response_end_write(d);
}

int duda_puts(struct duda_ctx *d, const char *text)
{
    return duda_write(d, mk_str_from_c(text));
}

int duda_printf(struct duda_ctx *d, const char *fmt, ...)
{
    int e = duda_response_begin_write(d);
    if (e)
        return e;
    va_list args;
    va_start(args, fmt);
    duda_format_append(&d->out, fmt, args);
    va_end(args);
    return duda_response_end_write(d);
}

int duda_flush(struct duda_ctx *d)
{
    if (d->tunnels)
        return -EALREADY;
    d->said = true;
    bool begun = d->streams;
    d->streams = true;
    if (!begun && !d->out.len) /* only the headers */
        return duda_suspend_until(d, DUDA_SUSPEND_FOR_OUTPUT);
    return wait_until_sent(d);
}

int duda_response_reset(struct duda_ctx *d)
{
    if (d->streams)
        return -EALREADY;
    mk_buf_clear(&d->out);
    d->said = d->has_status = false;
    return mk_response_set_status(d->response, 200);
}

int duda_result(const struct duda_ctx *d)
{
    return d->result;
}

void duda_set_result(struct duda_ctx *d, int result)
{
    d->result = result;
}
