/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets: callbacks of the endpoint become messages that a handler waits for, or callbacks of the
 * service. */
#include <errno.h>
#include <monkey/sized.h>

#include "service/suspend.h"
#include "service/topics.h"
#include "service/websocket_type.h"

/* ---- Closing ---- */

static void release_profile(struct duda_worker_ctx *worker_ctx, struct duda_websocket_profile *m)
{
    struct duda_websocket_profile **at = &worker_ctx->profiles;
    if (--m->users)
        return;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    mk_mem_free(m);
}

static void free_message(struct duda_websocket *s)
{
    union {
        const char *text;
        void *memory;
    } p = {.text = s->message.p};
    mk_mem_free(p.memory);
    s->message = MK_STR_NULL;
    s->has_message = false;
}

static void websocket_free(struct duda_websocket *s)
{
    duda_topics_unsubscribe_all(s->worker_ctx, &s->members);
    free_message(s);
    release_profile(s->worker_ctx, s->profile);
    mk_mem_free(s);
}

void duda_websocket_end_callbacks(struct duda_websocket *s, unsigned code)
{
    if (s->profile->options.on_close)
        s->profile->options.on_close(s, code, s->ctx);
    websocket_free(s);
}

static void on_close(void *ctx, struct mk_websocket *end, unsigned code, mk_str reason)
{
    struct duda_websocket *s = ctx;
    struct duda_ctx *handler = s->d ? s->d : s->attaching;
    (void)end, (void)reason;
    s->end = NULL;
    s->close_code = (unsigned short)code;
    duda_topics_unsubscribe_all(s->worker_ctx, &s->members);
    if (handler) { /* the handler sees the end, and then frees the WebSocket */
        handler->woken = true;
        s->worker_ctx->resume_handler(handler);
    } else {
        duda_websocket_end_callbacks(s, code);
    }
}

/* The close code after the handler (RFC 6455, section 7.4.1). A handler whose wait was cancelled has not
 * failed: the server is draining. */
static unsigned close_code_of_result(int result)
{
    bool is_success = result == 0 || result == DUDA_HANDLED || (result >= 200 && result < 400);
    if (is_success)
        return MK_WEBSOCKET_NORMAL;
    return result == -ECANCELED ? MK_WEBSOCKET_GOING_AWAY : MK_WEBSOCKET_INTERNAL_ERROR;
}

/* Called when the handler has returned. */
static void on_handler_end(void *ctx)
{
    struct duda_websocket *s = ctx;
    unsigned code = close_code_of_result(s->d->result);
    s->d = NULL;
    s->attaching = NULL;
    duda_topics_unsubscribe_all(s->worker_ctx, &s->members);
    if (s->end)
        (void)mk_websocket_close(s->end, code, MK_STR(""));
    else
        websocket_free(s);
}

/* ---- Messages ---- */

static bool store_message(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data)
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
    struct duda_websocket *s = ctx;
    if (s->profile->options.on_message) {
        s->profile->options.on_message(s, kind, data, s->ctx);
        return;
    }
    if (!s->d)
        return;
    free_message(s);
    if (!store_message(s, kind, data)) {
        (void)mk_websocket_close(end, MK_WEBSOCKET_INTERNAL_ERROR, MK_STR(""));
        return;
    }
    if (s->wants) {
        s->d->woken = true;
        s->worker_ctx->resume_handler(s->d);
    }
    /* A busy handler gets the next message when it asks for it. */
    if (s->d && s->end && !s->wants)
        mk_websocket_pause(end);
}

static void on_writable(void *ctx, struct mk_websocket *end)
{
    struct duda_websocket *s = ctx;
    (void)end;
    if (s->d || s->attaching)
        duda_wake(s->d ? s->d : s->attaching);
}

static const struct mk_websocket_ops ops = {
    .on_message = on_message, .on_writable = on_writable, .on_close = on_close};

/* ---- Opening ---- */

static void init_protocol_options(struct duda_websocket_profile *m)
{
    const struct duda_websocket_options *o = &m->options;
    m->wire = (struct mk_websocket_options){.ops = &ops};
    m->wire.subprotocols = o->subprotocols;
    /* Browsers send cookies even with handshakes from pages of other sites. */
    m->wire.origins = o->origins ? o->origins : "same";
    m->wire.message_max = o->message_max;
    m->wire.queue_max = o->queue_max;
    m->wire.ping_ms = o->ping_ms;
    m->wire.flags = o->compress ? MK_WEBSOCKET_COMPRESS : 0;
}

static bool options_are_equal(const struct duda_websocket_options *a, const struct duda_websocket_options *b)
{
    return a->on_message == b->on_message && a->on_close == b->on_close && a->slow == b->slow &&
           a->subprotocols == b->subprotocols && a->origins == b->origins &&
           a->message_max == b->message_max && a->queue_max == b->queue_max && a->ping_ms == b->ping_ms &&
           a->compress == b->compress;
}

static struct duda_websocket_profile *acquire_profile(struct duda_worker_ctx *worker_ctx,
                                                      const struct duda_websocket_options *options)
{
    static const struct duda_websocket_options defaults;
    struct duda_websocket_profile *m = worker_ctx->profiles;
    options = options ? options : &defaults;
    while (m && !options_are_equal(&m->options, options))
        m = m->next;
    if (!m) {
        m = mk_mem_zalloc(1, sizeof *m);
        if (!m)
            return NULL;
        m->options = *options;
        init_protocol_options(m);
        m->next = worker_ctx->profiles;
        worker_ctx->profiles = m;
    }
    m->users++;
    return m;
}

static struct duda_websocket *websocket_new(struct duda_ctx *d, const struct duda_websocket_options *o,
                                            void *ctx)
{
    struct duda_websocket *s = mk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->worker_ctx = d->worker_ctx;
    s->owner = d->owner;
    s->ctx = ctx;
    s->profile = acquire_profile(d->worker_ctx, o);
    if (!s->profile) {
        mk_mem_free(s);
        return NULL;
    }
    if (!s->profile->options.on_message)
        s->d = d;
    return s;
}

int duda_websocket_open_sized(struct duda_ctx *d, const struct duda_websocket_options *options,
                              size_t options_size, void *ctx, struct duda_websocket **out)
{
    struct duda_websocket_options full;
    options = mk_sized_in(&full, sizeof full, options, options_size);
    *out = NULL;
    if (d->cancel_error)
        return duda_suspend(d);
    if (d->output >= DUDA_OUTPUT_STREAMED)
        return -EALREADY;
    struct duda_websocket *s = websocket_new(d, options, ctx);
    if (!s)
        return -ENOMEM;
    int e = mk_websocket_open(d->request, d->response, &s->profile->wire, s, &s->end);
    if (e) {
        d->is_refused = true; /* the response explains the error */
        websocket_free(s);
        return e;
    }
    d->output = DUDA_OUTPUT_TUNNEL;
    if (s->d && (e = duda_defer(d, on_handler_end, s))) /* on_handler_end() ran at once and closed the
                                                         * WebSocket */
        return e;
    s->mark = duda_arena_mark(d);
    *out = s;
    return 0;
}

/* ---- In a handler ---- */

static int receive_message(struct duda_ctx *d, struct duda_websocket *s, struct duda_message *out)
{
    int e = 0;
    if (!s->has_message)
        free_message(s);
    duda_arena_rewind(d, s->mark);
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

int duda_websocket_receive_sized(struct duda_ctx *d, struct duda_websocket *s, struct duda_message *out,
                                 size_t out_size)
{
    struct duda_message full = {0};
    int result = receive_message(d, s, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}

int duda_websocket_try_send(struct duda_websocket *s, enum mk_websocket_kind kind, mk_str data)
{
    int e = s->end ? mk_websocket_send(s->end, kind, data) : -ESHUTDOWN;
    return e == -ESHUTDOWN ? -ECANCELED : e;
}

int duda_websocket_send(struct duda_ctx *d, struct duda_websocket *s, enum mk_websocket_kind kind,
                        mk_str data)
{
    int e;
    while ((e = duda_websocket_try_send(s, kind, data)) == -EAGAIN)
        if ((e = duda_suspend(d)))
            return e;
    return e;
}

int duda_websocket_printf(struct duda_ctx *d, struct duda_websocket *s, const char *fmt, ...)
{
    struct mk_buf text = mk_buf_growing(16 << 20);
    va_list args;
    va_start(args, fmt);
    mk_buf_addv(&text, fmt, args);
    va_end(args);
    int e = text.failed ? -ENOMEM : duda_websocket_try_send(s, MK_WEBSOCKET_TEXT, mk_buf_str(&text));
    mk_str kept = e == -EAGAIN ? duda_strdup(d, mk_buf_str(&text)) : MK_STR_NULL;
    mk_buf_free(&text); /* freed before the wait: a handler terminated there would leak it */
    if (e != -EAGAIN)
        return e;
    return kept.p ? duda_websocket_send(d, s, MK_WEBSOCKET_TEXT, kept) : -ENOMEM;
}

void duda_websocket_close(struct duda_websocket *s, unsigned code, mk_str reason)
{
    if (s->end)
        (void)mk_websocket_close(s->end, code, reason);
}

struct mk_websocket *duda_websocket_raw(const struct duda_websocket *s)
{
    return s->end;
}
