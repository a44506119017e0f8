/* SPDX-License-Identifier: Apache-2.0 */
#include "web/byteranges.h"

#include <inttypes.h>
#include <sys/random.h>

#include "web/response.h"
#include "web/vhost.h"

static enum mk_verdict fail_with_status(struct mk_response *response, unsigned status)
{
    (void)mk_response_set_status(response, status);
    return MK_ERROR;
}

int mk_byteranges_select(const struct mk_request *request, const struct mk_validators *validators,
                         uint64_t size, bool coded, struct mk_range *ranges)
{
    bool wants_range = request->site->ranges && request->target->method == MK_METHOD_GET &&
                       mk_headers_has(&request->fields, MK_HEADER_RANGE) &&
                       mk_precondition_if_range_holds(&request->fields, validators, request->now);
    if (!wants_range)
        return 0;
    int n =
        mk_range_parse(mk_headers_get(&request->fields, MK_HEADER_RANGE), size, ranges, MK_BYTERANGES_MAX);
    return n > 1 && coded ? 0 : n; /* clients cannot decode separate ranges of a compressed representation */
}

enum mk_verdict mk_byteranges_refuse(struct mk_response *response, uint64_t size)
{
    mk_str value = mk_arena_printf(response->arena, "bytes */%" PRIu64, size);
    if (!value.p || !mk_response_add_header_unchecked(response, MK_STR("Content-Range"), value))
        return fail_with_status(response, 503);
    return fail_with_status(response, 416);
}

/* Appends the bytes of the range in the body `whole` to another body. */
static bool append_range(struct mk_response_body *to, struct mk_arena *arena,
                         const struct mk_response_body *whole, struct mk_range range)
{
    uint64_t left = range.last - range.first + 1;
    bool ok = true;
    for (const struct mk_response_body_part *p = whole->parts; ok && p && left; p = p->next) {
        uint64_t len = p->file ? p->len : p->bytes.len;
        if (range.first >= len) {
            range.first -= len;
            continue;
        }
        uint64_t n = len - range.first < left ? len - range.first : left;
        ok = p->file ? mk_response_body_add_file(to, arena, p->file, p->offset + range.first, n)
                     : mk_response_body_add_text(to, arena, mk_str_of(p->bytes.p + range.first, (size_t)n));
        range.first = 0;
        left -= n;
    }
    return ok;
}

static bool apply_single_range(struct mk_response *response, struct mk_response_body *body,
                               const struct mk_range *range)
{
    mk_str value = mk_arena_printf(response->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range->first,
                                   range->last, response->content.length);
    return value.p && mk_response_add_header_unchecked(response, MK_STR("Content-Range"), value) &&
           append_range(body, response->arena, &response->content, *range);
}

/* Returns a multipart boundary that the author of the body cannot predict. */
static uint64_t make_boundary(void)
{
    uint64_t n = 0;
    (void)!getrandom(&n, sizeof n, GRND_NONBLOCK);
    return n;
}

static bool append_multipart(struct mk_response *response, struct mk_response_body *body, mk_str type,
                             const struct mk_range *range, uint64_t boundary)
{
    mk_str head = mk_arena_printf(response->arena,
                                  "\r\n--%016" PRIx64 "\r\n%s%.*s%sContent-Range: bytes %" PRIu64 "-%" PRIu64
                                  "/%" PRIu64 "\r\n\r\n",
                                  boundary, type.p ? "Content-Type: " : "", MK_STR_ARG(type),
                                  type.p ? "\r\n" : "", range->first, range->last, response->content.length);
    return head.p && mk_response_body_add_text(body, response->arena, head) &&
           append_range(body, response->arena, &response->content, *range);
}

/* Each part has the Content-Type of the representation; that of the response becomes multipart/byteranges. */
static bool apply_several_ranges(struct mk_response *response, struct mk_response_body *body,
                                 const struct mk_range *ranges, unsigned n)
{
    uint64_t boundary = make_boundary();
    mk_str type = mk_response_header(response, MK_STR("Content-Type"));
    for (unsigned i = 0; i < n; i++)
        if (!append_multipart(response, body, type, &ranges[i], boundary))
            return false;
    mk_str end = mk_arena_printf(response->arena, "\r\n--%016" PRIx64 "--\r\n", boundary);
    mk_str full = mk_arena_printf(response->arena, "multipart/byteranges; boundary=%016" PRIx64, boundary);
    return end.p && full.p && mk_response_body_add_text(body, response->arena, end) &&
           mk_response_set_header(response, MK_STR("Content-Type"), full) == 0;
}

bool mk_byteranges_apply(struct mk_response *response, const struct mk_range *ranges, unsigned n)
{
    struct mk_response_body body;
    mk_response_body_init(&body);
    bool ok = n == 1 ? apply_single_range(response, &body, &ranges[0])
                     : apply_several_ranges(response, &body, ranges, n);
    body.origin = response->content.origin;
    mk_response_body_move(&response->content, &body);
    response->status = 206;
    return ok;
}
