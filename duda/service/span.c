/* SPDX-License-Identifier: Apache-2.0 */
#include "service/span.h"

#include <monkey/clock.h>
#include <stdio.h>
#include <string.h>

#include "service/route_table.h"
#include "service/url.h"

/* ---- Contents ---- */

static mk_str copy_text(struct duda_ctx *d, mk_str text)
{
    char *p = mk_request_alloc(d->request, text.len + 1);
    if (!p)
        return MK_STR_NULL;
    if (text.len)
        memcpy(p, text.p, text.len);
    return mk_str_of(p, text.len);
}

/* Prepends an attribute. */
static void add_attribute(struct duda_ctx *d, struct mk_span *span, const char *name,
                          struct mk_span_attribute value)
{
    unsigned n = 0;
    for (const struct mk_span_attribute *a = span->attributes; a; a = a->next)
        n++;
    struct mk_span_attribute *a =
        n < DUDA_SPAN_ATTRIBUTES_MAX ? mk_request_alloc(d->request, sizeof *a) : NULL;
    value.name = a ? copy_text(d, mk_str_from_c(name)) : MK_STR_NULL;
    value.next = span->attributes;
    if (!value.name.p)
        return;
    *a = value;
    span->attributes = a;
}

void duda_span_add_text(struct duda_ctx *d, struct mk_span *span, const char *name, mk_str value)
{
    mk_str copy = span ? copy_text(d, value) : MK_STR_NULL;
    if (copy.p)
        add_attribute(d, span, name, (struct mk_span_attribute){.text = copy});
}

void duda_span_add_int(struct duda_ctx *d, struct mk_span *span, const char *name, int64_t value)
{
    if (span)
        add_attribute(d, span, name, (struct mk_span_attribute){.number = value});
}

void duda_span_fail(struct duda_ctx *d, struct mk_span *span, mk_str error)
{
    if (span)
        span->error = copy_text(d, error);
}

/* ---- Begin and end ---- */

static struct mk_span *begin_span(struct duda_ctx *d, const char *name)
{
    struct mk_span *s = d->request ? mk_request_add_span(d->request, MK_SPAN_INTERNAL, d->span) : NULL;
    if (!s)
        return NULL;
    s->name = copy_text(d, mk_str_from_c(name));
    d->span = s;
    return s;
}

/* The attribute `http.route` includes the mount point of the service, as the conventions of OpenTelemetry demand. */
static void add_route(struct duda_ctx *d, struct mk_span *s)
{
    char buf[512];
    struct mk_buf route = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&route, duda_url_mount_prefix(d));
    mk_buf_add(&route, d->route_entry->pattern);
    duda_span_add_text(d, s, "http.route", route.failed ? d->route_entry->pattern : mk_buf_str(&route));
}

void duda_span_begin_handler(struct duda_ctx *d)
{
    const struct duda_route *route = d->route_entry->route;
    struct mk_span *s = begin_span(d, route->name);
    duda_span_add_text(d, s, "code.function.name", mk_str_from_c(route->name));
    if (s)
        add_route(d, s);
}

void duda_span_end_handler(struct duda_ctx *d)
{
    char text[32];
    struct mk_span *handler = d->span;
    while (handler->parent)
        handler = handler->parent;
    snprintf(text, sizeof text, "%d", d->result);
    if (d->result < 0)
        duda_span_fail(d, handler, mk_str_from_c(strerror(-d->result)));
    else if (d->result >= 500 && d->result != DUDA_HANDLED)
        duda_span_fail(d, handler, mk_str_from_c(text));
    duda_span_end(d, handler);
    d->span = NULL;
}

struct mk_span *duda_span_begin(struct duda_ctx *d, const char *name)
{
    return d->span ? begin_span(d, name) : NULL;
}

struct mk_span *duda_span_current(struct duda_ctx *d)
{
    return d->span;
}

static bool is_open(const struct duda_ctx *d, const struct mk_span *span)
{
    const struct mk_span *s = d->span;
    while (s && s != span)
        s = s->parent;
    return s;
}

void duda_span_end(struct duda_ctx *d, struct mk_span *span)
{
    if (!span || !is_open(d, span))
        return;
    uint64_t now_us = mk_clock_us();
    for (struct mk_span *s = d->span; s != span->parent; s = s->parent)
        s->ended_us = now_us;
    d->span = span->parent;
}
