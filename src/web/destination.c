/* SPDX-License-Identifier: Apache-2.0 */
#include "web/destination.h"

#include "web/asked.h"
#include "web/exchange.h"

/* 0, or a status. Two slashes at the beginning would be followed by the name of a host. */
static unsigned parse(const struct mk_request *r, mk_str text, struct mk_asked *to)
{
    if (mk_str_starts(text, MK_STR("//")) || mk_target_parse(MK_METHOD_GET, text, &to->target))
        return 400;
    char *room = mk_arena_alloc(r->arena, to->target.path.len + 1);
    if (!room)
        return 503;
    return (unsigned)mk_path_decode(to->target.path, room, &to->path, &to->path_flags);
}

static unsigned find(const struct mk_request *r, struct mk_asked **out)
{
    mk_str text, more;
    unsigned at = 0;
    struct mk_asked *to = mk_arena_alloc(r->arena, sizeof *to);
    if (!to)
        return 503;
    *to = (struct mk_asked){.by = MK_ASKED_BY_CLIENT};
    bool is_one = mk_headers_next(&r->fields, MK_HEADER_DESTINATION, &at, &text) &&
                  !mk_headers_next(&r->fields, MK_HEADER_DESTINATION, &at, &more);
    unsigned status = is_one ? parse(r, text, to) : 400;
    if (!status)
        *out = to;
    return status == 400 && r->received.method != MK_METHOD_UNKNOWN ? 0 : status;
}

unsigned mk_destination_of(const struct mk_request *r, struct mk_asked **out)
{
    struct mk_exchange *x = mk_exchange_of(r);
    unsigned status = x->destination ? 0 : find(r, &x->destination);
    *out = x->destination;
    return status;
}

unsigned mk_request_destination(const struct mk_request *r, struct mk_destination *out)
{
    struct mk_asked *to;
    unsigned status = mk_headers_has(&r->fields, MK_HEADER_DESTINATION) ? mk_destination_of(r, &to) : 0;
    *out = (struct mk_destination){0};
    if (status || !mk_headers_has(&r->fields, MK_HEADER_DESTINATION) || !to)
        return status;
    *out = (struct mk_destination){.host = to->target.host, .path = to->path, .uri = mk_asked_uri(r, to)};
    return out->uri.p ? 0 : 503;
}
