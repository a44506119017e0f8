/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the head of a CGI response: the parser finds its end regardless of how the input is split, the
 * output lies inside the input, and no output can end a header line or a head that we write. */
#include <monkey/cgi.h>
#include <monkey/text.h>

#include "base/assert.h"

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

/* Returns where the head ends when the bytes arrive one by one. */
static size_t end_slowly(mk_str in)
{
    size_t end = 0;
    for (size_t len = 1; !end && len <= in.len; len++)
        end = mk_cgi_head_end(mk_str_first(in, len), len - 1);
    return end;
}

static void check_fields(mk_str head, const struct mk_cgi_head *h)
{
    mk_str rest = head, name, value;
    unsigned n_locations = 0;
    while (mk_cgi_head_next(&rest, &name, &value)) {
        check_slice(head, name);
        check_slice(head, value);
        MK_ASSERT(mk_is_token(name) && mk_is_header_value(value));
        MK_ASSERT(mk_str_trim(value).len == value.len);
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Content-Length")));
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Transfer-Encoding")));
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Connection")));
        MK_ASSERT(!mk_str_eq_nocase(name, MK_STR("Status")));
        n_locations += mk_str_eq_nocase(name, MK_STR("Location"));
    }
    MK_ASSERT(n_locations == (h->location.p != NULL));
}

static void check_head(mk_str head)
{
    struct mk_cgi_head h;
    bool is_good = mk_cgi_head_read(&h, head);
    check_slice(head, h.error_line);
    MK_ASSERT(is_good == !h.error);
    if (!is_good)
        return;
    MK_ASSERT(h.status >= 200 && h.status <= 599);
    MK_ASSERT(h.length >= -1 && (!h.location.p || h.location.len > 0));
    check_slice(head, h.location);
    check_fields(head, &h);
    if (h.is_local_redirect)
        MK_ASSERT(h.location.p[0] == '/' && (h.location.len == 1 || h.location.p[1] != '/'));
}

static void check_status_line(mk_str in)
{
    unsigned status = 0, slow = 0;
    int r = mk_cgi_head_status_line(in, &status), slowly = 0;
    for (size_t len = 0; slowly == 0 && len <= in.len; len++)
        slowly = mk_cgi_head_status_line(mk_str_first(in, len), &slow);
    MK_ASSERT(r == slowly && status == slow);
    MK_ASSERT(r != 1 || (status >= 100 && status <= 599));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str in = mk_str_of((const char *)data, size);
    size_t end = mk_cgi_head_end(in, 0);
    MK_ASSERT(end == end_slowly(in) && end <= in.len);
    check_status_line(in);
    if (!end)
        return 0;
    MK_ASSERT(is_blank_line(mk_str_first(in, end)));
    check_head(mk_str_first(in, end));
    return 0;
}
