/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/proxy.h"

#include <errno.h>

enum { GATHER_MAX = 16 * 1024 };

/* ---- Gathering ---- */

/* A part of this server has no connections to save, and may answer what it has read so far. What an upgrade has
 * is gathered in any case: the tunnel begins at its end. */
static size_t gathered_of(const struct mk_proxy_call *c, int64_t length)
{
    bool is_streamed = c->route->streams || (c->route->is_part && length == MK_LENGTH_UNKNOWN);
    if ((is_streamed || c->upload.is_held) && !c->upgrade.p)
        return 0;
    return length == MK_LENGTH_UNKNOWN ? GATHER_MAX : length <= GATHER_MAX ? (size_t)length : 0;
}

/* A part of this server asks its client for the content, or refuses the request without it, as if it were not
 * behind us. */
static bool is_held(struct mk_request *request)
{
    return mk_request_version(request) >= 11 && mk_request_length(request) &&
           mk_str_eq_nocase(mk_request_field(request, MK_STR("Expect")), MK_STR("100-continue"));
}

bool mk_proxy_upload_begin(struct mk_proxy_call *c)
{
    struct mk_proxy_upload *u = &c->upload;
    int64_t length = mk_request_length(c->request);
    if (length > GATHER_MAX)
        c->upgrade = MK_ABSENT; /* the backend may answer without it */
    u->is_held = c->route->is_part && is_held(c->request);
    u->cap = gathered_of(c, length);
    u->is_spooled = length && !c->route->streams && !c->route->is_part;
    u->text = u->cap ? mk_request_alloc(c->request, u->cap) : NULL;
    return u->text || !u->cap;
}

/* An upgrade needs the end of the content; where there is none yet, the request goes on without the upgrade. */
static int end_content(struct mk_proxy_call *c)
{
    char beyond[1];
    ssize_t n = c->upload.is_whole ? mk_request_read(c->request, beyond, sizeof beyond) : -E2BIG;
    if (n < 0 && n != -E2BIG)
        return (int)n;
    if (n)
        c->upgrade = MK_ABSENT;
    return 0;
}

static int gather(struct mk_proxy_call *c)
{
    struct mk_proxy_upload *u = &c->upload;
    bool has_length = mk_request_length(c->request) != MK_LENGTH_UNKNOWN;
    while (u->got < u->cap) {
        ssize_t n = mk_request_read(c->request, u->text + u->got, u->cap - u->got);
        if (n < 0 || (n == 0 && has_length))
            return n ? (int)n : -EBADMSG;
        if (n == 0)
            break;
        u->got += (size_t)n;
    }
    u->is_whole = has_length || u->got < u->cap;
    return c->upgrade.p ? end_content(c) : 0;
}

static int spool(struct mk_proxy_call *c)
{
    int e = mk_spool_request(c->request, 0, &c->upload.spool);
    c->upload.is_whole = e == 0;
    return e;
}

int mk_proxy_upload_gather(struct mk_proxy_call *c)
{
    struct mk_proxy_upload *u = &c->upload;
    int e = u->cap && !u->spool ? gather(c) : 0;
    return e || u->is_whole || !u->is_spooled ? e : spool(c);
}

/* ---- Sending ---- */

static ssize_t pull_gathered(struct mk_proxy_upload *u, char *room, size_t cap)
{
    mk_str part = mk_str_first(mk_str_of(u->text + u->sent, u->got - u->sent), cap);
    memcpy(room, part.p, part.len);
    u->sent += part.len;
    return (ssize_t)part.len;
}

static ssize_t pull_spooled(struct mk_proxy_upload *u, char *room, size_t cap)
{
    ssize_t n = mk_spool_read(u->spool, room, cap, u->spool_sent);
    if (n > 0)
        u->spool_sent += (uint64_t)n;
    return n;
}

/* The connection may have room for more at any time: then the server has to call us first. */
static ssize_t pull(void *ctx, char *room, size_t cap)
{
    struct mk_proxy_call *c = ctx;
    bool is_early = c->step == MK_PROXY_WAIT && c->upgrade.p; /* it is no tunnel yet */
    if (is_early)
        return -EAGAIN;
    if (c->upload.sent < c->upload.got)
        return pull_gathered(&c->upload, room, cap);
    if (c->upload.is_whole)
        return c->upload.spool ? pull_spooled(&c->upload, room, cap) : 0;
    if (c->is_called)
        return mk_request_read(c->request, room, cap);
    mk_request_resume(c->request);
    return -EAGAIN;
}

static bool rewind_whole(void *ctx)
{
    struct mk_proxy_upload *u = &((struct mk_proxy_call *)ctx)->upload;
    u->sent = 0;
    u->spool_sent = 0;
    return true;
}

static bool trailer_at(void *ctx, size_t i, mk_str *name, mk_str *value)
{
    const struct mk_proxy_call *c = ctx;
    for (size_t at = 0; mk_request_trailer_at(c->request, at, name, value); at++)
        if (mk_proxy_fields_may_have(c, *name) && i-- == 0)
            return true;
    return false;
}

static const struct mk_upstream_request_body whole = {
    .source = {.pull = pull}, .rewind = rewind_whole, .trailer_at = trailer_at};
static const struct mk_upstream_request_body streamed = {.source = {.pull = pull}, .trailer_at = trailer_at};

/* Trailers need chunks. */
static bool has_trailers(struct mk_proxy_call *c)
{
    mk_str name, value;
    return trailer_at(c, 0, &name, &value);
}

/* The exchange has the content; ours is what follows in the tunnel. */
static void add_upgraded(struct mk_proxy_call *c, struct mk_upstream_request_options *ask)
{
    struct mk_proxy_upload *u = &c->upload;
    if (u->is_whole)
        ask->content = mk_str_of(u->text, u->got);
    ask->source = &streamed;
    ask->source_ctx = c;
    u->got = u->sent = 0;
    u->is_whole = false;
}

void mk_proxy_upload_add(struct mk_proxy_call *c, struct mk_upstream_request_options *ask)
{
    const struct mk_proxy_upload *u = &c->upload;
    bool needs_chunks = u->is_whole && has_trailers(c);
    if (c->upgrade.p) {
        add_upgraded(c, ask);
        return;
    }
    ask->length = mk_request_length(c->request);
    ask->expects_continue = u->is_held;
    if (u->spool && !needs_chunks)
        ask->length = (int64_t)(u->got + mk_spool_length(u->spool));
    if (u->is_whole && !u->spool && !needs_chunks) {
        ask->content = mk_str_of(u->text, u->got);
    } else if (ask->length) {
        ask->source = u->is_whole ? &whole : &streamed;
        ask->source_ctx = c;
    }
}
