/* SPDX-License-Identifier: Apache-2.0 */
#include "connection/h1_trailers.h"

#include "http/header.h"
#include "http/serialize.h"
#include "web/trailers.h"

static struct mk_buf *alloc_trailer_section(struct mk_h1 *h)
{
    struct mk_arena *arena = &h->d.x->arena;
    struct mk_buf *section = mk_arena_alloc(arena, sizeof *section);
    char *buf = section ? mk_arena_alloc(arena, h->chunked->overhead_max) : NULL;
    if (!buf)
        return NULL;
    *section = mk_buf_fixed(buf, h->chunked->overhead_max);
    return section;
}

mk_err mk_h1_trailers_append(struct mk_h1 *h, mk_str piece)
{
    if (!h->trailers)
        h->trailers = alloc_trailer_section(h);
    if (!h->trailers)
        return -ENOMEM;
    mk_buf_add(h->trailers, piece); /* the decoder has checked the size */
    return h->trailers->failed ? -EBADMSG : 0;
}

mk_err mk_h1_trailers_parse(struct mk_h1 *h)
{
    struct mk_request *r = &h->d.x->request;
    mk_str name, value, section = h->trailers ? mk_buf_str(h->trailers) : MK_STR("");
    unsigned n = 0;
    while (mk_trailer_next(&section, &name, &value)) {
        if (n++ == h->d.conn->manager->limits->head.fields_max)
            return -EBADMSG;
        if (mk_trailer_is_allowed(name) && !mk_trailers_add(&r->trailers, r->arena, name, value))
            return -ENOMEM;
    }
    return 0;
}

void mk_h1_trailers_write(const struct mk_h1 *h, struct mk_buf *out)
{
    const struct mk_trailers *t = h->d.x->response.trailers;
    bool expected = mk_request_accepts_trailers(&h->d.x->request);
    mk_buf_add(out, MK_STR("0\r\n"));
    for (unsigned i = 0; expected && i < t->n; i++)
        mk_serialize_header(out, t->at[i].name, t->at[i].value);
    mk_serialize_head_end(out);
}
