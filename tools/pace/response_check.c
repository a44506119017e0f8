/* SPDX-License-Identifier: Apache-2.0 */
#include "pace/response_check.h"

#include <inttypes.h>
#include <monkey/text.h>
#include <stdio.h>

void pace_response_check_fini(struct pace_response_check *r)
{
    mk_buf_free(&r->body);
}

static uint64_t first_difference(mk_str a, const char *b)
{
    uint64_t i = 0;
    while (i < a.len && a.p[i] == b[i])
        i++;
    return i;
}

static void compare_body(const struct pace_response_check *r, struct pace_comparison *c, mk_str data)
{
    size_t known = r->body.len > c->at ? r->body.len - (size_t)c->at : 0;
    mk_str part = mk_str_first(data, known);
    if (!r->varies && !c->differs_at && part.len && memcmp(r->body.p + c->at, part.p, part.len) != 0)
        c->differs_at = c->at + first_difference(part, r->body.p + c->at) + 1;
    c->at += data.len;
}

static bool record_body(struct pace_response_check *r, mk_str data)
{
    if (r->varies)
        return true;
    if (r->body.max == 0)
        r->body = mk_buf_growing(PACE_RESPONSE_CHECK_MAX);
    mk_buf_add(&r->body, data);
    return !r->body.failed;
}

/* Returns false if any length is allowed. */
static bool get_expected_length(const struct pace_response_check *r, uint64_t *out)
{
    *out = r->expected.has_length ? r->expected.length : r->body_length;
    return r->expected.has_length || (r->recorded && !r->varies);
}

bool pace_response_check_body(struct pace_response_check *r, struct pace_comparison *c,
                              const struct mk_response_parser *reply, mk_str data,
                              char why[PACE_RESPONSE_CHECK_ERROR_MAX])
{
    uint64_t most;
    if (reply->head.status != r->expected.status)
        return true; /* the wrong status is reported at the end */
    if (get_expected_length(r, &most) && reply->length > most) {
        snprintf(why, PACE_RESPONSE_CHECK_ERROR_MAX, "more than %" PRIu64 " bytes of content", most);
        return false;
    }
    if (r->recorded)
        compare_body(r, c, data);
    else if (!record_body(r, data)) {
        snprintf(why, PACE_RESPONSE_CHECK_ERROR_MAX,
                 "the content is too large to keep (256 MB); use --varies, which does not keep it");
        return false;
    }
    return true;
}

static enum pace_verdict check_status(const struct pace_response_check *r,
                                      const struct mk_response_parser *reply,
                                      char why[PACE_RESPONSE_CHECK_ERROR_MAX])
{
    if (reply->head.status == r->expected.status)
        return PACE_RESPONSE_OK;
    snprintf(why, PACE_RESPONSE_CHECK_ERROR_MAX, "status %u, not %u", reply->head.status, r->expected.status);
    return PACE_RESPONSE_WRONG_STATUS;
}

enum pace_verdict pace_response_check_verify(const struct pace_response_check *r,
                                             const struct pace_comparison *c,
                                             const struct mk_response_parser *reply,
                                             char why[PACE_RESPONSE_CHECK_ERROR_MAX])
{
    enum pace_verdict verdict = check_status(r, reply, why);
    if (verdict != PACE_RESPONSE_OK)
        return verdict;
    uint64_t expected;
    if (get_expected_length(r, &expected) && reply->length != expected)
        snprintf(why, PACE_RESPONSE_CHECK_ERROR_MAX, "%" PRIu64 " bytes of content, not %" PRIu64,
                 reply->length, expected);
    else if (c->differs_at)
        snprintf(why, PACE_RESPONSE_CHECK_ERROR_MAX,
                 "the content differs from that of the first response at byte %" PRIu64, c->differs_at - 1);
    else
        return PACE_RESPONSE_OK;
    return PACE_RESPONSE_WRONG_BODY;
}

static void write_sha1_hex(struct mk_buf *out, const unsigned char sha1[MK_SHA1_LEN])
{
    mk_hex_encode(out, mk_str_of((const char *)sha1, MK_SHA1_LEN));
}

enum pace_verdict pace_response_check_end_recording(struct pace_response_check *r,
                                                    const struct mk_response_parser *reply,
                                                    char why[PACE_RESPONSE_CHECK_ERROR_MAX])
{
    static const struct pace_comparison same;
    r->recorded = true;
    r->body_length = reply->length;
    mk_sha1(mk_buf_str(&r->body), r->body_sha1);
    enum pace_verdict verdict = pace_response_check_verify(r, &same, reply, why);
    if (verdict != PACE_RESPONSE_OK || !r->expected.has_sha1 ||
        memcmp(r->expected.sha1, r->body_sha1, MK_SHA1_LEN) == 0)
        return verdict;
    struct mk_buf text = mk_buf_fixed(why, PACE_RESPONSE_CHECK_ERROR_MAX - 1);
    mk_buf_add(&text, MK_STR("SHA-1 of the content "));
    write_sha1_hex(&text, r->body_sha1);
    mk_buf_add(&text, MK_STR(", not "));
    write_sha1_hex(&text, r->expected.sha1);
    why[text.len] = '\0';
    return PACE_RESPONSE_WRONG_BODY;
}
