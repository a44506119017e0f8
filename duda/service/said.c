/* SPDX-License-Identifier: Apache-2.0 */
/* What the client gets. */
#include <errno.h>
#include <stdio.h>

#include "service/cookie_names.h"
#include "service/said.h"
#include "service/task.h"
#include "text/format.h"

enum {
    KEPT_MAX = 64 << 10, /* content that is longer is sent while it is made */
    OUT_MAX = 1 << 30,   /* of one piece */
    FIRST_ROOM = 1024,
};

int duda_status(struct duda *d, unsigned status)
{
    int e = d->streams ? -EALREADY : mk_response_set_status(d->response, status);
    d->has_status |= !e;
    return e;
}

static bool is_field(const char *name, mk_str wanted)
{
    return mk_str_eq_nocase(mk_str_from_c(name), wanted);
}

/* May the service say it, and may it still be said? */
static int allow(const struct duda *d, const char *name, mk_str value)
{
    if (d->streams)
        return -EALREADY;
    return is_field(name, MK_STR("Set-Cookie")) ? duda_cookies_allow_line(d, value) : 0;
}

int duda_set(struct duda *d, const char *name, mk_str value)
{
    int e = allow(d, name, value);
    e = e ? e : mk_response_set(d->response, mk_str_from_c(name), value);
    d->typed |= !e && is_field(name, MK_STR("Content-Type"));
    return e;
}

int duda_said_add(struct duda *d, const char *name, mk_str value)
{
    if (d->streams)
        return -EALREADY;
    int e = mk_response_add(d->response, mk_str_from_c(name), value);
    d->typed |= !e && is_field(name, MK_STR("Content-Type"));
    return e;
}

int duda_add(struct duda *d, const char *name, mk_str value)
{
    int e = allow(d, name, value);
    return e ? e : duda_said_add(d, name, value);
}

int duda_type(struct duda *d, const char *type)
{
    return duda_set(d, "Content-Type", mk_str_from_c(type));
}

int duda_said_type(struct duda *d, mk_str type)
{
    if (d->streams || d->typed)
        return d->streams ? -EALREADY : mk_response_set(d->response, MK_STR("Content-Type"), type);
    int e = mk_response_add_static(d->response, MK_STR("Content-Type"), type);
    d->typed = !e;
    return e;
}

/* Lets the client take all that was said. */
static int drain(struct duda *d)
{
    int e = 0;
    d->streams = true;
    while (d->out.len && !e)
        e = duda_task_suspend(d, DUDA_FOR_ROOM);
    return e;
}

int duda_said_end(struct duda *d)
{
    if (d->out.failed)
        return -ENOMEM;
    d->said = true;
    return d->out.len >= KEPT_MAX ? drain(d) : 0;
}

/* One handler after the other says it into the same room. */
static void begin_out(struct duda *d)
{
    struct mk_buf *spare = &d->home->spare;
    d->out.p = spare->p;
    d->out.cap = spare->cap;
    d->out.max = OUT_MAX;
    spare->p = NULL;
    spare->cap = 0;
    if (!d->out.p)
        (void)mk_buf_reserve(&d->out, FIRST_ROOM);
}

int duda_said_begin(struct duda *d)
{
    if (!d->out.max)
        begin_out(d);
    if (d->tunnels)
        return -EALREADY;
    return d->ended ? duda_task_suspend(d, DUDA_FOR_ROOM) : 0;
}

int duda_say(struct duda *d, mk_str text)
{
    int e = duda_said_begin(d);
    if (e)
        return e;
    mk_buf_add(&d->out, text);
    return duda_said_end(d);
}

int duda_puts(struct duda *d, const char *text)
{
    return duda_say(d, mk_str_from_c(text));
}

int duda_printf(struct duda *d, const char *fmt, ...)
{
    int e = duda_said_begin(d);
    if (e)
        return e;
    va_list args;
    va_start(args, fmt);
    duda_format_add(&d->out, fmt, args);
    va_end(args);
    return duda_said_end(d);
}

int duda_flush(struct duda *d)
{
    if (d->tunnels)
        return -EALREADY;
    d->said = true;
    bool begun = d->streams;
    d->streams = true;
    if (!begun && !d->out.len) /* the head alone */
        return duda_task_suspend(d, DUDA_FOR_ROOM);
    return drain(d);
}

int duda_clear(struct duda *d)
{
    if (d->streams)
        return -EALREADY;
    mk_buf_clear(&d->out);
    d->said = d->has_status = false;
    return mk_response_set_status(d->response, 200);
}

int duda_result(const struct duda *d)
{
    return d->result;
}

void duda_set_result(struct duda *d, int result)
{
    d->result = result;
}
