/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies (RFC 6265bis). */
#ifndef DUDA_COOKIE_H
#define DUDA_COOKIE_H

#include <monkey/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When browsers send a cookie along with requests that other sites have caused. */
enum duda_same_site {
    DUDA_SAME_SITE_LAX,    /**< when a link is followed */
    DUDA_SAME_SITE_STRICT, /**< never */
    DUDA_SAME_SITE_NONE    /**< always; only over TLS */
};

/** A cookie that is set. All that is zero is the safe choice. */
struct duda_cookie {
    const char *name; /**< a token; begin it with `__Host-` for the strictest rules */
    mk_str value;     /**< visible ASCII without `"`, `,`, `;` and `\`: encode anything else */
    int64_t max_age;  /**< seconds; 0: until the browser is closed; below 0: forget it now */
    mk_str path;      /**< absent: "/" */
    mk_str domain;    /**< absent: this host alone, which is best */
    enum duda_same_site same_site;
    bool for_scripts; /**< scripts of the page may read it: it is not HttpOnly */
    bool without_tls; /**< it is also sent over plain HTTP, although it was set over TLS */
};

/** The bytes that name, value and attributes of a cookie may have together: browsers refuse more. */
enum { DUDA_COOKIE_MAX = 4096 };

/**
 * The value of a Set-Cookie field. `is_tls`: the cookie gets `Secure`. 0, or -EINVAL, with nothing written:
 * the name is no token; name, value, path or domain hold a character that must not be there; the cookie is
 * too long; or the rules of its prefix (`__Host-`, `__Secure-`) or of DUDA_SAME_SITE_NONE are not met.
 *
 *     struct duda_cookie cookie = {.name = "theme", .value = MK_STR("dark"), .max_age = 365 * 86400};
 *     int e = duda_cookie_write(&out, &cookie, is_tls);
 */
MK_API int duda_cookie_write(struct mk_buf *out, const struct duda_cookie *cookie,
                             bool is_tls) MK_API_MUST_USE;

/* Texts of the two functions below are slices of the field, so no NUL follows them. */

/** The next cookie of a Cookie field; moves *rest behind it. False at the end. What is no pair is passed
 * over. */
MK_API bool duda_cookie_next(mk_str *rest, mk_str *name, mk_str *value);
/** The value of the first one of that name (case counts); absent if there is none. */
MK_API mk_str duda_cookie_find(mk_str field, mk_str name);

#ifdef __cplusplus
}
#endif

#endif
