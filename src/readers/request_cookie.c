/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies of a request, and Set-Cookie headers of its response. */
#include <errno.h>
#include <monkey/cookie.h>
#include <monkey/request.h>
#include <monkey/response.h>

/* HTTP/2 clients may send a separate header for each cookie. */
mk_str mk_request_cookie_view(const struct mk_request *r, const char *expected)
{
    mk_str name, value;
    for (size_t i = 0; mk_request_header_at(r, i, &name, &value); i++) {
        if (!mk_str_eq_nocase(name, MK_STR("Cookie")))
            continue;
        mk_str found = mk_cookie_find(value, mk_str_from_c(expected));
        if (found.p)
            return found;
    }
    return MK_STR_NULL;
}

int mk_request_cookie(struct mk_request *r, const char *name, mk_str *value)
{
    mk_str found = mk_request_cookie_view(r, name);
    *value = MK_STR_NULL;
    if (!found.p)
        return -ENOENT;
    char *copy = mk_request_alloc(r, found.len + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, found.p, found.len);
    copy[found.len] = '\0';
    *value = mk_str_of(copy, found.len);
    return 0;
}

int mk_response_add_cookie_sized(const struct mk_request *request, struct mk_response *response,
                                 const struct mk_cookie *cookie, size_t cookie_size)
{
    char room[MK_COOKIE_MAX + 1];
    struct mk_buf line = mk_buf_fixed(room, sizeof room);
    bool is_tls = mk_str_eq(mk_request_scheme(request), MK_STR("https"));
    int e = mk_cookie_write_sized(&line, cookie, cookie_size, is_tls);
    return e ? e : mk_response_add_header(response, MK_STR("Set-Cookie"), mk_buf_str(&line));
}
