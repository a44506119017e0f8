/* SPDX-License-Identifier: Apache-2.0 */
/* What a script says before its content: its end is found wherever its pieces end, what comes out lies inside
 * of it, and nothing of it could end a field line or a head that we write. The parser of the gateways
 * understands it in the same way. */
#include "base/assert.h"
#include "http/reply_head.h"
#include "plugins/cgi/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_slice(mk_str in, mk_str s)
{
    MK_ASSERT(!s.p || (s.p >= in.p && s.p + s.len <= in.p + in.len));
}

static bool is_blank_line(mk_str head)
{
    return mk_str_ends(head, MK_STR("\n\n")) || mk_str_ends(head, MK_STR("\n\r\n")) ||
           mk_str_eq(head, MK_STR("\n")) || mk_str_eq(head, MK_STR("\r\n"));
}

/* Where the head ends, when the bytes come one by one. */
static size_t end_slowly(mk_str in)
{
    size_t end = 0;
    for (size_t len = 1; !end && len <= in.len; len++)
        end = cgi_head_end(mk_str_first(in, len), len - 1);
    return end;
}

static void check_fields(mk_str in, const struct cgi_head *h)
{
    mk_str rest = h->fields, name, value;
    unsigned n = 0;
    while (cgi_head_next(&rest, &name, &value)) {
        check_slice(in, name);
        check_slice(in, value);
        MK_ASSERT(mk_is_token(name) && mk_is_field_value(value));
        MK_ASSERT(mk_str_trim(value).len == value.len);
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Content-Length")));
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Transfer-Encoding")));
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Connection")));
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Status")));
        n++;
    }
    MK_ASSERT(n == h->n_others + (h->location.p != NULL) + (h->type.p != NULL));
}

static void check_head(mk_str in, mk_str head)
{
    struct cgi_head h;
    bool ok = cgi_head_parse(&h, head);
    check_slice(in, h.where);
    MK_ASSERT(ok == !h.wrong);
    if (!ok)
        return;
    MK_ASSERT(h.status == 0 || (h.status >= 200 && h.status <= 599));
    MK_ASSERT(h.length >= -1 && (!h.location.p || h.location.len > 0));
    check_slice(in, h.location);
    check_slice(in, h.type);
    check_fields(in, &h);
    if (cgi_head_is_local_redirect(&h))
        MK_ASSERT(h.location.p[0] == '/' && (h.location.len == 1 || h.location.p[1] != '/'));
}

static bool is_equal(const struct mk_reply_head *r, const struct cgi_head *h)
{
    unsigned status = h->status ? h->status : h->location.p ? 302 : 200;
    return r->status == status && r->has_status == (h->status > 0) && r->n_others == h->n_others &&
           r->has_length == (h->length >= 0) && (h->length < 0 || r->length == (uint64_t)h->length) &&
           mk_str_eq(mk_fields_get(&r->fields, MK_FIELD_LOCATION), h->location) &&
           mk_str_eq(mk_fields_get(&r->fields, MK_FIELD_CONTENT_TYPE), h->type) &&
           mk_reply_head_is_local_redirect(r) == cgi_head_is_local_redirect(h);
}

/* It is stricter with status lines alone, and takes fewer fields. */
static void check_gateways(mk_str in, mk_str head)
{
    struct mk_field fields[MK_FIELDS_MAX];
    struct mk_reply_head r = {.fields.at = fields};
    struct cgi_head h;
    bool ok = !mk_reply_head_parse(&r, head, MK_FIELDS_MAX, (struct mk_reply_request){.cgi = true});
    check_slice(in, r.where);
    if (cgi_head_parse(&h, head))
        MK_ASSERT(ok ? is_equal(&r, &h) : r.is_too_long || mk_str_starts(head, MK_STR("HTTP/")));
    else
        MK_ASSERT(!ok);
}

static void check_status_line(mk_str in)
{
    unsigned status = 0, slow = 0;
    int r = cgi_head_status_line(in, &status), slowly = 0;
    for (size_t len = 0; slowly == 0 && len <= in.len; len++)
        slowly = cgi_head_status_line(mk_str_first(in, len), &slow);
    MK_ASSERT(r == slowly && status == slow);
    MK_ASSERT(r != 1 || (status >= 100 && status <= 599));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str in = mk_str_of((const char *)data, size);
    size_t end = cgi_head_end(in, 0);
    MK_ASSERT(end == end_slowly(in) && end <= in.len);
    MK_ASSERT(end == mk_reply_head_end(in, 0, (struct mk_reply_request){.cgi = true}));
    check_status_line(in);
    if (!end)
        return 0;
    MK_ASSERT(is_blank_line(mk_str_first(in, end)));
    check_head(in, mk_str_first(in, end));
    check_gateways(in, mk_str_first(in, end));
    return 0;
}
