/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional requests and byte ranges for responses of handlers. */
#include <monkey/response.h>

#include "base/sha1.h"
#include "http/date.h"
#include "http/etag.h"
#include "web/byteranges.h"
#include "web/response.h"
#include "web/vhost.h"

enum { ETAG_BYTES = 12 };

/* ---- Preconditions ---- */

static bool is_read_method(const struct mk_request *request)
{
    return request->target->method == MK_METHOD_GET || request->target->method == MK_METHOD_HEAD;
}

static unsigned check_preconditions(const struct mk_request *request, const struct mk_validators *validators)
{
    switch (mk_precondition_check(&request->fields, request->target->method, validators, request->now)) {
    case MK_PRECONDITION_NOT_MODIFIED:
        return 304;
    case MK_PRECONDITION_FAILED:
        return 412;
    case MK_PRECONDITION_PASS:
        break;
    }
    return 0;
}

unsigned mk_request_check_preconditions(const struct mk_request *request, mk_str etag, int64_t modified)
{
    const struct mk_validators validators = {.etag = etag,
                                             .modified = modified ? modified : MK_MODIFIED_NONE};
    return check_preconditions(request, &validators);
}

/* ---- Responses ---- */

static bool consists_of_parts(const struct mk_response *response)
{
    return response->content.form == MK_RESPONSE_BODY_PARTS;
}

/* Adds a strong ETag, the digest of the body. Bodies in files get none: reading them would block the
 * worker. */
static int add_etag(struct mk_response *response)
{
    unsigned char digest[MK_SHA1_LEN];
    char room[2 * ETAG_BYTES + 3];
    struct mk_sha1 sha;
    struct mk_buf etag = mk_buf_fixed(room, sizeof room);
    mk_sha1_init(&sha);
    for (const struct mk_response_body_part *p = response->content.parts; p; p = p->next) {
        if (p->file)
            return 0;
        mk_sha1_update(&sha, p->bytes);
    }
    mk_sha1_final(&sha, digest);
    mk_buf_add_char(&etag, '"');
    mk_hex_encode(&etag, mk_str_of((const char *)digest, ETAG_BYTES));
    mk_buf_add_char(&etag, '"');
    return mk_response_set_header(response, MK_STR("ETag"), mk_buf_str(&etag));
}

static struct mk_validators response_validators(const struct mk_request *request,
                                                const struct mk_response *response)
{
    mk_str etag = mk_response_header(response, MK_STR("ETag"));
    mk_str date = mk_response_header(response, MK_STR("Last-Modified"));
    struct mk_validators v = {.etag = mk_etag_is_valid(etag) ? etag : MK_STR_NULL,
                              .modified = MK_MODIFIED_NONE};
    if (date.p && !mk_date_parse(date, request->now, &v.modified))
        v.modified = MK_MODIFIED_NONE;
    return v;
}

/* A 304 has only the headers that a cache needs to update its response (RFC 9110, section 15.4.5). */
static int become_not_modified(struct mk_response *response)
{
    static const mk_str names[] = {MK_STR_INIT("Content-Type"), MK_STR_INIT("Content-Encoding"),
                                   MK_STR_INIT("Content-Language"), MK_STR_INIT("Content-Disposition"),
                                   MK_STR_INIT("Accept-Ranges")};
    int e = 0;
    for (size_t i = 0; i < MK_LEN(names) && !e; i++)
        if (mk_response_header(response, names[i]).p)
            e = mk_response_remove_header(response, names[i]);
    mk_response_body_fini(&response->content);
    mk_response_invalidate_cached_head(response);
    response->status = 304;
    return e;
}

static int serve_ranges(const struct mk_request *request, struct mk_response *response,
                        const struct mk_validators *validators)
{
    struct mk_range ranges[MK_BYTERANGES_MAX];
    bool coded = mk_response_header(response, MK_STR("Content-Encoding")).p != NULL;
    uint64_t size = response->content.length;
    if (!request->site->ranges || !consists_of_parts(response) ||
        mk_response_header(response, MK_STR("Accept-Ranges")).p)
        return 0;
    int n = mk_byteranges_select(request, validators, size, coded, ranges);
    if (n < 0) {
        (void)mk_byteranges_refuse(response, size);
        return (int)response->status;
    }
    mk_response_invalidate_cached_head(response);
    if (!mk_response_add_header_unchecked(response, MK_STR("Accept-Ranges"), MK_STR("bytes")))
        return -ENOMEM;
    return n == 0 || mk_byteranges_apply(response, ranges, (unsigned)n) ? 0 : -ENOMEM;
}

int mk_response_make_conditional(struct mk_request *request, struct mk_response *response, unsigned flags)
{
    int e = 0;
    if (response->sealed)
        return -EALREADY;
    if (!is_read_method(request) || mk_response_status(response) != 200 ||
        response->content.form > MK_RESPONSE_BODY_SOURCE)
        return 0;
    if (flags & MK_CONDITIONAL_ETAG && consists_of_parts(response) &&
        !mk_response_header(response, MK_STR("ETag")).p)
        e = add_etag(response);
    if (e)
        return e;
    struct mk_validators validators = response_validators(request, response);
    unsigned status = check_preconditions(request, &validators);
    if (status == 304)
        return become_not_modified(response);
    if (status) {
        response->status = status;
        return (int)status;
    }
    return flags & MK_CONDITIONAL_RANGES ? serve_ranges(request, response, &validators) : 0;
}
