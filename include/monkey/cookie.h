/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies (RFC 6265bis): reads the cookies of a request, and writes Set-Cookie headers with safe defaults. In
 * the program `monkey`, these functions are in monkey-readers.so (docs/guide/plugins.md). */
#ifndef MONKEY_COOKIE_H
#define MONKEY_COOKIE_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** SameSite: whether browsers send a cookie with cross-site requests. */
enum mk_same_site {
    MK_SAME_SITE_LAX,    /**< when the user follows a link */
    MK_SAME_SITE_STRICT, /**< never */
    MK_SAME_SITE_NONE    /**< always, but only over TLS */
};

/** A cookie to set. The zero value of each member is the safe choice. */
struct mk_cookie {
    const char *name; /**< a token (RFC 9110); the prefix `__Host-` has the strictest rules */
    mk_str value;     /**< visible ASCII except `"`, `,`, `;` and `\`: encode other values */
    int64_t max_age;  /**< seconds; 0: until the browser closes; negative: delete the cookie */
    mk_str path;      /**< absent: "/" */
    mk_str domain;    /**< absent: this host only, which is the safest */
    enum mk_same_site same_site;
    bool script_readable; /**< omit HttpOnly: scripts can read the cookie */
    bool insecure;        /**< omit Secure: browsers also send the cookie over plain HTTP */
};

/** Maximum size of name, value and attributes together, in bytes; browsers reject larger cookies. */
enum { MK_COOKIE_MAX = 4096 };

/**
 * Writes the value of a Set-Cookie header. `is_tls` adds `Secure`. Returns 0, or -EINVAL with nothing
 * written: the name is not a token; name, value, path or domain contain a forbidden character; the cookie is
 * too long; or it violates the rules of its prefix (`__Host-`, `__Secure-`) or of MK_SAME_SITE_NONE.
 * Thread-safe.
 *
 *     struct mk_cookie cookie = {.name = "theme", .value = MK_STR("dark"), .max_age = 365 * 86400};
 *     int e = mk_cookie_write(&out, &cookie, is_tls);
 */
MK_API int mk_cookie_write_sized(struct mk_buf *out, const struct mk_cookie *cookie, size_t cookie_size,
                                 bool is_tls) MK_API_MUST_USE;
static inline MK_API_MUST_USE int mk_cookie_write(struct mk_buf *out, const struct mk_cookie *cookie,
                                                  bool is_tls)
{
    return mk_cookie_write_sized(out, cookie, sizeof *cookie, is_tls);
}

struct mk_request;
struct mk_response;

/**
 * Reads a cookie: sets *value to the value of the first cookie of the request with that name
 * (case-sensitive). The value is a NUL-terminated copy, which lives as long as the request. Returns 0, also
 * for an empty value; -ENOENT if the request has no such cookie, or -ENOMEM; *value is then absent. The value
 * comes from the client: any byte except control characters and `;` may occur in it.
 *
 *     mk_str theme;
 *     int e = mk_request_cookie(request, "theme", &theme);
 *     if (e && e != -ENOENT)
 *         return MK_ERROR;
 *     bool is_dark = !e && mk_str_eq(theme, MK_STR("dark"));
 */
MK_API int mk_request_cookie(struct mk_request *request, const char *name, mk_str *value) MK_API_MUST_USE;
/**
 * Like mk_request_cookie(), without the copy: returns a part of the header, which is not NUL-terminated;
 * absent if the request has no such cookie.
 *
 *     bool is_dark = mk_str_eq(mk_request_cookie_view(request, "theme"), MK_STR("dark"));
 */
MK_API mk_str mk_request_cookie_view(const struct mk_request *request, const char *name);

/**
 * Adds a Set-Cookie header to the response, with `Secure` if the request came over TLS. Returns 0; -EINVAL as
 * for mk_cookie_write(); or -ENOMEM or -EALREADY as for mk_response_add_header().
 *
 *     int e = mk_response_add_cookie(request, response, &(struct mk_cookie){.name = "id", .value = id});
 */
MK_API int mk_response_add_cookie_sized(const struct mk_request *request, struct mk_response *response,
                                        const struct mk_cookie *cookie, size_t cookie_size) MK_API_MUST_USE;
static inline MK_API_MUST_USE int mk_response_add_cookie(const struct mk_request *request,
                                                         struct mk_response *response,
                                                         const struct mk_cookie *cookie)
{
    return mk_response_add_cookie_sized(request, response, cookie, sizeof *cookie);
}

/* The two functions below return slices of the header, which are not NUL-terminated. */

/** Parses the next cookie of a Cookie header and advances *rest past it. Returns false at the end. Malformed
 * pairs are skipped. */
MK_API bool mk_cookie_next(mk_str *rest, mk_str *name, mk_str *value);
/** The value of the first cookie with that name (case-sensitive) in a Cookie header; absent if there is
 * none. */
MK_API mk_str mk_cookie_find(mk_str header, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
