/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/proxy.h"

#include <errno.h>
#include <monkey/mem.h>
#include <monkey/plugin.h>
#include <monkey/worker.h>

/* IN_FLIGHT_MAX: copies in flight per worker; READ_MAX: bytes of a response to read before its connection is
 * closed; ROOM: size of the read buffer. */
enum { IN_FLIGHT_MAX = 256, READ_MAX = 1024 * 1024, ROOM = 16 * 1024 };

struct mirrored_request {
    struct mirrored_request *next, **link;
    struct mk_proxy_mirror *of;
    struct mk_upstream_request *upstream;
    size_t read;
    bool has_head;
    char content[];
};

/* Mirror state of one worker. */
struct mk_proxy_mirror {
    struct mirrored_request *first;
    unsigned n;
    uint64_t random;
};

struct mk_proxy_mirror *mk_proxy_mirror_new(struct mk_worker *worker)
{
    struct mk_proxy_mirror *m = mk_mem_zalloc(1, sizeof *m);
    if (m)
        m->random = (uint64_t)(uintptr_t)m ^ (uint64_t)mk_worker_now(worker) ^ UINT64_C(0x9e3779b97f4a7c15);
    return m;
}

static void mirrored_request_free(struct mirrored_request *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    c->of->n--;
    mk_upstream_request_free(c->upstream);
    mk_mem_free(c);
}

void mk_proxy_mirror_free(struct mk_proxy_mirror *m)
{
    while (m && m->first)
        mirrored_request_free(m->first);
    mk_mem_free(m);
}

/* ---- One copy ---- */

/* Reads the response head. 0: it is complete; -EAGAIN; or an error. */
static int mirrored_request_read_head(struct mirrored_request *c)
{
    int e = c->has_head ? 0 : 1;
    while (e > 0)
        e = mk_upstream_request_head(c->upstream);
    c->has_head = e == 0;
    return e;
}

/* Reads the response to its end, so that the connection can be reused. */
static void mirrored_request_discard_response(void *ctx)
{
    struct mirrored_request *c = ctx;
    char buf[ROOM];
    ssize_t n = mirrored_request_read_head(c);
    while (n >= 0 && c->read < READ_MAX && (n = mk_upstream_request_read(c->upstream, buf, sizeof buf)) > 0)
        c->read += (size_t)n;
    if (n != -EAGAIN)
        mirrored_request_free(c);
}

static void mirrored_request_start(struct mk_worker *worker, struct mk_proxy_mirror *m,
                                   struct mk_upstream_request_options *options)
{
    struct mirrored_request *c = mk_mem_alloc(sizeof *c + options->body.len);
    if (!c)
        return;
    *c = (struct mirrored_request){.of = m, .next = m->first, .link = &m->first};
    if (options->body.p)
        options->body = mk_str_of(memcpy(c->content, options->body.p, options->body.len), options->body.len);
    if (m->first)
        m->first->link = &c->next;
    m->first = c;
    m->n++;
    c->upstream = mk_upstream_request_start(worker, options, mirrored_request_discard_response, c);
    if (c->upstream)
        mirrored_request_discard_response(c);
    else
        mirrored_request_free(c);
}

/* Is this request sampled? Uses xorshift64, because sampling need not be unpredictable. */
static bool mirror_is_sampled(struct mk_proxy_mirror *m, unsigned share)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random % MK_PROXY_SHARE_ALL < share;
}

void mk_proxy_mirror_send(struct mk_proxy_mirror *m, struct mk_worker *worker,
                          const struct mk_proxy_route *route,
                          const struct mk_upstream_request_options *options)
{
    bool is_complete = !options->body_source && !options->upgrade.p;
    if (!is_complete || !mirror_is_sampled(m, route->share) || m->n >= IN_FLIGHT_MAX)
        return;
    struct mk_upstream_request_options mirrored_request = *options;
    mirrored_request.upstream = route->mirror;
    mirrored_request.resumes = NULL;
    mirrored_request.limits.max_tries = 1;
    mirrored_request.conn.server = -1;
    mirrored_request.conn.request = NULL;
    mirrored_request.conn.client = NULL; /* no client waits for the copy, which may outlive the original
                                            request */
    mirrored_request_start(worker, m, &mirrored_request);
}
