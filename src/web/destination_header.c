/* SPDX-License-Identifier: Apache-2.0 */
#include "web/destination_header.h"

#include <monkey/sized.h>

#include "web/exchange.h"
#include "web/request_target.h"

/* Parses the header's value. Returns 0 or a status. Rejects a value with two leading slashes, because
 * programs may parse the text after them as an authority. */
static unsigned parse_destination(const struct mk_request *r, mk_str text, struct mk_request_target *to)
{
    if (mk_str_starts(text, MK_STR("//")) || mk_target_parse(MK_METHOD_GET, text, &to->target))
        return 400;
    char *buf = mk_arena_alloc(r->arena, to->target.path.len + 1);
    if (!buf)
        return 503;
    return (unsigned)mk_path_decode(to->target.path, buf, &to->path, &to->path_flags);
}

static unsigned find_destination(const struct mk_request *r, struct mk_request_target **out)
{
    mk_str text, more;
    unsigned at = 0;
    struct mk_request_target *to = mk_arena_alloc(r->arena, sizeof *to);
    if (!to)
        return 503;
    *to = (struct mk_request_target){.by = MK_TARGET_BY_CLIENT};
    bool is_one = mk_headers_next(&r->fields, MK_HEADER_DESTINATION, &at, &text) &&
                  !mk_headers_next(&r->fields, MK_HEADER_DESTINATION, &at, &more);
    unsigned status = is_one ? parse_destination(r, text, to) : 400;
    if (!status)
        *out = to;
    return status == 400 && r->received.method != MK_METHOD_UNKNOWN ? 0 : status;
}

unsigned mk_destination_header_target(const struct mk_request *r, struct mk_request_target **out)
{
    struct mk_exchange *x = mk_exchange_of(r);
    unsigned status = x->destination ? 0 : find_destination(r, &x->destination);
    *out = x->destination;
    return status;
}

static unsigned read_destination(const struct mk_request *r, struct mk_destination *out)
{
    struct mk_request_target *to;
    unsigned status =
        mk_headers_has(&r->fields, MK_HEADER_DESTINATION) ? mk_destination_header_target(r, &to) : 0;
    *out = (struct mk_destination){0};
    if (status || !mk_headers_has(&r->fields, MK_HEADER_DESTINATION) || !to)
        return status;
    *out = (struct mk_destination){
        .host = to->target.host, .path = to->path, .uri = mk_request_target_uri(r, to)};
    return out->uri.p ? 0 : 503;
}

unsigned mk_request_destination_sized(const struct mk_request *r, struct mk_destination *out, size_t out_size)
{
    struct mk_destination full = {0};
    unsigned result = read_destination(r, &full);
    mk_sized_out(out, out_size, &full, sizeof full);
    return result;
}
