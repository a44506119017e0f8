/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies (RFC 6265bis). */
#ifndef DUDA_COOKIE_H
#define DUDA_COOKIE_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** SameSite: whether browsers send a cookie with cross-site requests. */
enum duda_same_site {
    DUDA_SAME_SITE_LAX,    /**< when the user follows a link */
    DUDA_SAME_SITE_STRICT, /**< never */
    DUDA_SAME_SITE_NONE    /**< always, but only over TLS */
};

/** A cookie to set. The zero value of each member is the safe choice. */
struct duda_cookie {
    const char *name; /**< a token (RFC 9110); the prefix `__Host-` has the strictest rules */
    mk_str value;     /**< visible ASCII except `"`, `,`, `;` and `\`: encode other values */
    int64_t max_age;  /**< seconds; 0: until the browser closes; negative: delete the cookie */
    mk_str path;      /**< absent: "/" */
    mk_str domain;    /**< absent: this host only, which is the safest */
    enum duda_same_site same_site;
    bool script_readable; /**< omit HttpOnly: scripts can read the cookie */
    bool insecure;        /**< omit Secure: browsers also send the cookie over plain HTTP */
};

/** Maximum size of name, value and attributes together; browsers reject larger cookies. */
enum { DUDA_COOKIE_MAX = 4096 };

/**
 * Writes the value of a Set-Cookie header. `is_tls` adds `Secure`. Returns 0, or -EINVAL with nothing
 * written: the name is not a token; name, value, path or domain contain a forbidden character; the cookie is
 * too long; or it violates the rules of its prefix (`__Host-`, `__Secure-`) or of DUDA_SAME_SITE_NONE.
 *
 *     struct duda_cookie cookie = {.name = "theme", .value = MK_STR("dark"), .max_age = 365 * 86400};
 *     int e = duda_cookie_write(&out, &cookie, is_tls);
 */
MK_API int duda_cookie_write_sized(struct mk_buf *out, const struct duda_cookie *cookie, size_t cookie_size,
                                   bool is_tls) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_cookie_write(struct mk_buf *out, const struct duda_cookie *cookie,
                                                    bool is_tls)
{
    return duda_cookie_write_sized(out, cookie, sizeof *cookie, is_tls);
}

/* The two functions below return slices of the header, which are not NUL-terminated. */

/** Parses the next cookie of a Cookie header and advances *rest past it. Returns false at the end. Malformed
 * pairs are skipped. */
MK_API bool duda_cookie_next(mk_str *rest, mk_str *name, mk_str *value);
/** The value of the first cookie with that name (case-sensitive) in a Cookie header; absent if there is
 * none. */
MK_API mk_str duda_cookie_find(mk_str header, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
