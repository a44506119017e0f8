/* SPDX-License-Identifier: Apache-2.0 */
#include "http/etag.h"

#include "base/num.h"
#include "http/scan.h"

size_t mk_etag_write(char *out, int64_t mtime_ns, uint64_t size)
{
    size_t len = 0;
    out[len++] = '"';
    len += mk_num_write_hex(out + len, (uint64_t)mtime_ns);
    out[len++] = '-';
    len += mk_num_write_hex(out + len, size);
    out[len++] = '"';
    return len;
}

static bool is_weak(mk_str etag)
{
    return etag.len >= 2 && etag.p[0] == 'W' && etag.p[1] == '/';
}

static mk_str strip_weak_prefix(mk_str etag)
{
    return is_weak(etag) ? mk_str_skip(etag, 2) : etag;
}

/* Parses an entity tag at the beginning of *rest, and skips it; false: none. */
static bool parse_etag(mk_str *rest, mk_str *etag)
{
    mk_str tag = strip_weak_prefix(*rest);
    if (tag.len < 2 || tag.p[0] != '"')
        return false;
    const char *end = tag.p + tag.len, *quote = mk_scan_skip(tag.p + 1, end, MK_SCAN_ETAG);
    if (quote == end || *quote != '"')
        return false;
    *etag = mk_str_first(*rest, (size_t)(quote + 1 - rest->p));
    *rest = mk_str_skip(*rest, etag->len);
    return true;
}

bool mk_etag_is_valid(mk_str etag)
{
    mk_str tag;
    return parse_etag(&etag, &tag) && etag.len == 0;
}

bool mk_etag_matches(mk_str a, mk_str b, bool weak_comparison)
{
    if (!weak_comparison && (is_weak(a) || is_weak(b)))
        return false;
    return a.len && mk_str_eq(strip_weak_prefix(a), strip_weak_prefix(b));
}

static mk_str skip_blanks(mk_str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = mk_str_skip(s, 1);
    return s;
}

bool mk_etag_in_list(mk_str list, mk_str etag, bool weak_comparison)
{
    if (mk_str_eq(mk_str_trim(list), MK_STR("*")))
        return etag.p != NULL;
    while ((list = skip_blanks(list)).len) {
        mk_str candidate;
        bool found = parse_etag(&list, &candidate) && mk_etag_matches(candidate, etag, weak_comparison);
        list = skip_blanks(list);
        if (list.len && list.p[0] != ',')
            return false;
        if (found)
            return true;
        list = mk_str_skip(list, 1);
    }
    return false;
}
