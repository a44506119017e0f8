/* SPDX-License-Identifier: Apache-2.0 */
/* A head parsed at once and byte by byte gives the same result; all output lies inside the input and is
 * valid. The framing of accepted heads is checked as well. */
#include "base/assert.h"
#include "http/authority.h"
#include "http/framing.h"
#include "http/method.h"
#include "http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS_MAX = 16 };

static const struct mk_request_head_limits limits = {
    .head_max = 600, .target_max = 100, .fields_max = FIELDS_MAX};

static void check_slice(mk_str in, mk_str s)
{
    MK_ASSERT(s.p >= in.p && s.p + s.len <= in.p + in.len);
}

static void check_head(mk_str in, const struct mk_request_head *h)
{
    check_slice(in, h->method_text);
    check_slice(in, h->target);
    MK_ASSERT(mk_is_token(h->method_text) && mk_method_find(h->method_text) == h->method);
    MK_ASSERT(h->target.len > 0 && h->target.len <= limits.target_max && h->minor <= 9);
    if (h->path_len)
        MK_ASSERT(mk_path_is_plain(mk_str_first(h->target, h->path_len)) && h->path_len <= h->target.len &&
                  h->path_len == mk_min(h->target.len, mk_str_find(h->target, '?')));
    MK_ASSERT(h->len <= in.len && h->len <= limits.head_max && h->fields.n <= FIELDS_MAX);
    MK_ASSERT(mk_str_ends(mk_str_first(in, h->len), MK_STR("\r\n\r\n")));
    for (unsigned i = 0; i < h->fields.n; i++) {
        const struct mk_header_field *f = &h->fields.at[i];
        check_slice(in, f->name);
        check_slice(in, f->value);
        MK_ASSERT(mk_is_token(f->name) && mk_is_header_value(f->value));
        MK_ASSERT(mk_header_find_id(f->name) == f->id);
        MK_ASSERT(mk_str_trim(f->value).len == f->value.len);
        unsigned first = h->fields.first[f->id];
        MK_ASSERT(first > 0 && first <= i + 1 && h->fields.at[first - 1].id == f->id);
    }
}

static void check_framing(const struct mk_request_head *h)
{
    struct mk_authority_cache last = {0};
    struct mk_framing f, again;
    int status = mk_framing_parse(h, &last, &f);
    MK_ASSERT(status == 0 || status == 400 || status == 417 || status == 501);
    if (status)
        return;
    MK_ASSERT((f.body == MK_BODY_LENGTH) == (f.length > 0));
    MK_ASSERT(f.port <= MK_PORT_NONE && (f.host.p ? f.host.len > 0 : h->minor == 0));
    MK_ASSERT(mk_framing_parse(h, &last, &again) == 0 && mk_str_eq(f.host, again.host) &&
              f.port == again.port);
    MK_ASSERT(f.body != MK_BODY_CHUNKED || !mk_headers_has(&h->fields, MK_HEADER_CONTENT_LENGTH));
}

/* Returns the result of parsing bytes that arrive one by one. */
static int parse_slowly(struct mk_request_head *h, mk_str in)
{
    int r = 0;
    for (size_t len = 1; r == 0 && len <= in.len; len++)
        r = mk_request_head_parse(h, mk_str_first(in, len), len - 1, &limits);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_header_field buffer[FIELDS_MAX], slow_fields[FIELDS_MAX];
    struct mk_request_head h = {.fields = {.at = buffer}}, slow = {.fields = {.at = slow_fields}};
    mk_str in = mk_str_of((const char *)data, size);
    int r = mk_request_head_parse(&h, in, 0, &limits), slowly = parse_slowly(&slow, in);
    MK_ASSERT(r >= 0 || r == -400 || r == -414 || r == -431 || r == -501 || r == -505);
    MK_ASSERT(slowly == r || (slowly == 0 && r < 0));
    if (r <= 0)
        return 0;
    check_head(in, &h);
    check_head(in, &slow);
    MK_ASSERT(h.fields.n == slow.fields.n && (size_t)r == h.len);
    check_framing(&h);
    return 0;
}
