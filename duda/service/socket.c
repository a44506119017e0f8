/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets: the endpoint's callbacks become messages that a handler waits for, or callbacks of the service.
 */
#include <duda/scope.h>
#include <errno.h>
#include <stdio.h>

#include "service/membership.h"
#include "service/socket_type.h"
#include "service/task.h"

enum { TOO_SLOW = 1013 };

/* ---- Its end ---- */

static void drop_manner(struct duda_home *home, struct duda_manner *m)
{
    struct duda_manner **at = &home->manners;
    if (--m->users)
        return;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    mk_mem_free(m);
}

static void drop_message(struct duda_socket *s)
{
    union {
        const char *text;
        void *memory;
    } p = {.text = s->message.p};
    mk_mem_free(p.memory);
    s->message = MK_ABSENT;
    s->has_message = false;
}

static void free_socket(struct duda_socket *s)
{
    duda_membership_end(s->home, &s->members);
    drop_message(s);
    drop_manner(s->home, s->manner);
    mk_mem_free(s);
}

static void on_close(void *ctx, struct mk_websocket *end, unsigned code, mk_str reason)
{
    struct duda_socket *s = ctx;
    (void)end, (void)reason;
    s->end = NULL;
    duda_membership_end(s->home, &s->members);
    if (s->d) { /* it sees that, returns, and frees the socket */
        s->d->woken = true;
        s->home->go_on(s->d);
        return;
    }
    if (s->manner->options.on_close)
        s->manner->options.on_close(s, code, s->ctx);
    free_socket(s);
}

/* The handler has returned. */
static void on_handler_end(void *ctx)
{
    struct duda_socket *s = ctx;
    s->d = NULL;
    duda_membership_end(s->home, &s->members);
    if (s->end)
        (void)mk_websocket_close(s->end, MK_WEBSOCKET_NORMAL, MK_STR(""));
    else
        free_socket(s);
}

/* ---- Messages ---- */

static bool keep_message(struct duda_socket *s, enum mk_websocket_kind kind, mk_str data)
{
    char *copy = mk_mem_alloc(data.len + 1);
    if (!copy)
        return false;
    if (data.len)
        memcpy(copy, data.p, data.len);
    copy[data.len] = '\0';
    s->message = mk_str_of(copy, data.len);
    s->kind = kind;
    s->has_message = true;
    return true;
}

static void on_message(void *ctx, struct mk_websocket *end, enum mk_websocket_kind kind, mk_str data)
{
    struct duda_socket *s = ctx;
    if (s->manner->options.on_message) {
        s->manner->options.on_message(s, kind, data, s->ctx);
        return;
    }
    if (!s->d)
        return;
    drop_message(s);
    if (!keep_message(s, kind, data)) {
        (void)mk_websocket_close(end, MK_WEBSOCKET_INTERNAL_ERROR, MK_STR(""));
        return;
    }
    if (s->wants) {
        s->d->woken = true;
        s->home->go_on(s->d);
    }
    /* A handler that is busy gets the next one when it asks. */
    if (s->d && s->end && !s->wants)
        mk_websocket_pause(end);
}

static void on_room(void *ctx, struct mk_websocket *end)
{
    struct duda_socket *s = ctx;
    (void)end;
    if (s->d)
        duda_wake(s->d);
}

static const struct mk_websocket_ops ops = {
    .on_message = on_message, .on_room = on_room, .on_close = on_close};

/* ---- Opening ---- */

static void set_wire(struct duda_manner *m)
{
    const struct duda_socket_options *o = &m->options;
    m->wire = (struct mk_websocket_options){MK_WEBSOCKET_OPTIONS_HEAD, .ops = &ops};
    m->wire.subprotocols = o->subprotocols;
    m->wire.origins = o->origins ? o->origins : "same"; /* browsers send cookies from pages of any site */
    m->wire.message_max = o->message_max;
    m->wire.queue_max = o->queue_max;
    m->wire.ping_ms = o->ping_ms;
    m->wire.flags = o->compress ? MK_WEBSOCKET_COMPRESS : 0;
}

static bool are_alike(const struct duda_socket_options *a, const struct duda_socket_options *b)
{
    return a->on_message == b->on_message && a->on_close == b->on_close && a->slow == b->slow &&
           a->subprotocols == b->subprotocols && a->origins == b->origins &&
           a->message_max == b->message_max && a->queue_max == b->queue_max && a->ping_ms == b->ping_ms &&
           a->compress == b->compress;
}

static struct duda_manner *take_manner(struct duda_home *home, const struct duda_socket_options *options)
{
    static const struct duda_socket_options defaults;
    struct duda_manner *m = home->manners;
    options = options ? options : &defaults;
    while (m && !are_alike(&m->options, options))
        m = m->next;
    if (!m) {
        m = mk_mem_zalloc(1, sizeof *m);
        if (!m)
            return NULL;
        m->options = *options;
        set_wire(m);
        m->next = home->manners;
        home->manners = m;
    }
    m->users++;
    return m;
}

static struct duda_socket *make(struct duda *d, const struct duda_socket_options *o, void *ctx)
{
    struct duda_socket *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->home = d->home;
    s->owner = d->owner;
    s->ctx = ctx;
    s->manner = take_manner(d->home, o);
    if (!s->manner) {
        mk_mem_free(s);
        return NULL;
    }
    if (!s->manner->options.on_message)
        s->d = d;
    return s;
}

int duda_socket_open(struct duda *d, const struct duda_socket_options *options, void *ctx,
                     struct duda_socket **out)
{
    *out = NULL;
    if (d->ended)
        return duda_suspend(d);
    if (d->streams || d->tunnels)
        return -EALREADY;
    struct duda_socket *s = make(d, options, ctx);
    if (!s)
        return -ENOMEM;
    int e = mk_websocket_open(d->request, d->response, &s->manner->wire, s, &s->end);
    if (e) {
        d->is_refused = true; /* the response says why */
        free_socket(s);
        return e;
    }
    d->tunnels = true;
    if (s->d && (e = duda_defer(d, on_handler_end, s))) /* it was called: the socket closes */
        return e;
    s->mark = duda_mark(d);
    *out = s;
    return 0;
}

/* ---- In a handler ---- */

int duda_socket_receive(struct duda *d, struct duda_socket *s, struct duda_message *out)
{
    int e = 0;
    if (!s->has_message)
        drop_message(s);
    duda_release(d, s->mark);
    if (s->end && !s->has_message)
        mk_websocket_resume(s->end);
    s->wants = true;
    while (!s->has_message && s->end && !e)
        e = duda_suspend(d);
    s->wants = false;
    if (!s->has_message)
        return s->end ? e : 0;
    s->has_message = false;
    *out = (struct duda_message){s->kind, s->message};
    return 1;
}

int duda_socket_try(struct duda_socket *s, enum mk_websocket_kind kind, mk_str data)
{
    int e = s->end ? mk_websocket_send(s->end, kind, data) : -ESHUTDOWN;
    return e == -ESHUTDOWN ? -ECANCELED : e;
}

int duda_socket_send(struct duda *d, struct duda_socket *s, enum mk_websocket_kind kind, mk_str data)
{
    int e;
    while ((e = duda_socket_try(s, kind, data)) == -EAGAIN)
        if ((e = duda_suspend(d)))
            return e;
    return e;
}

int duda_socket_printf(struct duda *d, struct duda_socket *s, const char *fmt, ...)
{
    struct mk_buf text = mk_buf_growing(16 << 20);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    int e = text.failed ? -ENOMEM : duda_socket_try(s, MK_WEBSOCKET_TEXT, mk_buf_str(&text));
    mk_str kept = e == -EAGAIN ? duda_copy(d, mk_buf_str(&text)) : MK_ABSENT;
    mk_buf_free(&text); /* a handler that is terminated in a wait would leave it behind */
    if (e != -EAGAIN)
        return e;
    return kept.p ? duda_socket_send(d, s, MK_WEBSOCKET_TEXT, kept) : -ENOMEM;
}

void duda_socket_close(struct duda_socket *s, unsigned code, const char *reason)
{
    if (s->end)
        (void)mk_websocket_close(s->end, code, mk_str_from_c(reason ? reason : ""));
}

struct mk_websocket *duda_socket_endpoint(const struct duda_socket *s)
{
    return s->end;
}

/* ---- In rooms ---- */

static void hear(void *owner, struct duda_news *news)
{
    struct duda_socket *s = owner;
    if (!news->framed)
        news->framed = mk_websocket_message_new(news->kind, news->text);
    if (!news->framed || !s->end)
        return;
    if (mk_websocket_send_message(s->end, news->framed) == -EAGAIN &&
        s->manner->options.slow == DUDA_SLOW_CLOSES) {
        (void)mk_websocket_close(s->end, TOO_SLOW, MK_STR("too slow"));
        duda_membership_end(s->home, &s->members);
    }
}

static struct duda_hall hall_of(const struct duda_socket *s)
{
    return (struct duda_hall){s->home, duda_scope_of(s->owner)};
}

int duda_room_join(struct duda_socket *s, mk_str room)
{
    return s->end ? duda_membership_begin(hall_of(s), &s->members, room, s, hear) : -ECANCELED;
}

void duda_room_leave(struct duda_socket *s, mk_str room)
{
    duda_membership_leave(hall_of(s), &s->members, room);
}
