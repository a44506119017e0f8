/* SPDX-License-Identifier: Apache-2.0 */
#include "web/byteranges.h"

#include <inttypes.h>
#include <sys/random.h>

#include "http/range.h"

static enum mk_verdict fail_with_status(struct mk_response *response, unsigned status)
{
    (void)mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict send_range_not_satisfiable(struct mk_response *response, uint64_t size)
{
    mk_str value = mk_arena_printf(response->arena, "bytes */%" PRIu64, size);
    if (!value.p || !mk_response_add_header_unchecked(response, MK_STR("Content-Range"), value))
        return fail_with_status(response, 503);
    return fail_with_status(response, 416);
}

static bool append_range_body(struct mk_response *response, const struct mk_representation *r,
                              const struct mk_range *range)
{
    return mk_response_body_add_file(&response->content, response->arena, r->file, range->first,
                                     range->last - range->first + 1);
}

static enum mk_verdict send_single_range(struct mk_response *response, const struct mk_representation *r,
                                         const struct mk_range *range)
{
    mk_str value = mk_arena_printf(response->arena, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range->first,
                                   range->last, r->file->size);
    response->status = 206;
    bool ok = value.p && mk_response_add_default_block(response, &r->whole) &&
              mk_response_add_header_unchecked(response, MK_STR("Content-Range"), value) &&
              append_range_body(response, r, range);
    return ok ? MK_DONE : fail_with_status(response, 503);
}

/* Returns a multipart boundary that the author of the file cannot predict. */
static uint64_t make_boundary(void)
{
    uint64_t n = 0;
    (void)!getrandom(&n, sizeof n, GRND_NONBLOCK);
    return n;
}

static bool append_multipart(struct mk_response *response, const struct mk_representation *r,
                             const struct mk_range *range, uint64_t boundary)
{
    mk_str head = mk_arena_printf(response->arena,
                                  "\r\n--%016" PRIx64 "\r\nContent-Type: %.*s\r\n"
                                  "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n\r\n",
                                  boundary, MK_STR_ARG(r->type), range->first, range->last, r->file->size);
    return head.p && mk_response_body_add_text(&response->content, response->arena, head) &&
           append_range_body(response, r, range);
}

static bool append_all_parts(struct mk_response *response, const struct mk_representation *r,
                             const struct mk_range *ranges, unsigned n)
{
    uint64_t boundary = make_boundary();
    for (unsigned i = 0; i < n; i++)
        if (!append_multipart(response, r, &ranges[i], boundary))
            return false;
    mk_str end = mk_arena_printf(response->arena, "\r\n--%016" PRIx64 "--\r\n", boundary);
    mk_str type = mk_arena_printf(response->arena, "multipart/byteranges; boundary=%016" PRIx64, boundary);
    return end.p && type.p && mk_response_body_add_text(&response->content, response->arena, end) &&
           mk_response_set_header(response, MK_STR("Content-Type"), type) == 0;
}

static enum mk_verdict send_multipart_ranges(struct mk_response *response, const struct mk_representation *r,
                                             const struct mk_range *ranges, unsigned n)
{
    if (!mk_response_add_default_block(response, &r->about))
        return fail_with_status(response, 503);
    response->status = 206;
    /* Adds all of `form` except Content-Type, which each part has instead. */
    for (unsigned i = 1; i < r->form.n; i++)
        if (!mk_response_add_header_unchecked(response, r->form.fields[i].name, r->form.fields[i].value))
            return fail_with_status(response, 503);
    return append_all_parts(response, r, ranges, n) ? MK_DONE : fail_with_status(response, 503);
}

enum mk_verdict mk_byteranges_serve(struct mk_request *request, struct mk_response *response,
                                    const struct mk_representation *r)
{
    struct mk_range ranges[MK_BYTERANGES_MAX];
    int n = mk_range_parse(mk_headers_get(&request->fields, MK_HEADER_RANGE), r->file->size, ranges,
                           MK_BYTERANGES_MAX);
    if (n < 0)
        return send_range_not_satisfiable(response, r->file->size);
    /* Clients cannot decode separate ranges of a compressed representation. */
    if (n == 0 || (n > 1 && r->coded))
        return MK_NEXT;
    return n == 1 ? send_single_range(response, r, &ranges[0])
                  : send_multipart_ranges(response, r, ranges, (unsigned)n);
}
