/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of routes, and of the current request with another query. */
#ifndef DUDA_URL_H
#define DUDA_URL_H

#include <duda/service.h>
#include <duda/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Builds the URL of a route from its name: its `.url_name`, or else the name of its handler. The URL begins
 * with the path at which the service is mounted and the prefixes of the groups, so it remains correct when
 * these change.
 *
 * `params` is a map of strings, numbers and booleans, which are escaped. A member with the name of a
 * parameter of the pattern replaces this parameter. All other members form the query, which omits null
 * members. The values must match the parameter types: `:id<int>` requires an integer, and `:name` a segment,
 * which is not empty, not "." or "..", and contains no slash, because servers and proxies treat an escaped
 * slash differently (see duda_param()). Only the value of a final `*name` may contain slashes.
 *
 *     const struct duda_entry params[] = {
 *         {"id", duda_value_integer(7)},
 *         {"tab", duda_value_cstr("a&b")},
 *     };
 *     mk_str url = duda_url_for(d, "show_item", duda_value_map(params, 2)); // "/shop/items/7?tab=a%26b"
 *
 * Returns a path or, in a background task or a job, which has no request, an absolute URL that begins with
 * `PublicUrl` of [DUDA]. The URL is valid until the handler returns. It is absent, and the error log contains
 * the reason, if there is no such route, if several patterns have this name, if a parameter is missing or
 * invalid, or if a task needs `PublicUrl` and it is not set. It is also absent if memory is exhausted. For a
 * service in C, if `name` is a string literal that names no route, or more than one pattern, the server
 * already warns when it loads the service.
 */
MK_API mk_str duda_url_for(struct duda_ctx *d, const char *name, struct duda_value params) MK_API_MUST_USE;

/** A call of duda_url_for(). A macro of the same name records each call in a section of the object, so that
 * the server can warn about names without a route when it loads the service. The macro exists only in C,
 * because C++ compilers reject such sections in inline functions. */
struct duda_url_use {
    const char *name; /**< NULL: not known at compile time */
    const char *file;
    int line;
};
#ifndef __cplusplus
#define duda_url_for(d, name, ...)                                                                           \
    (__extension__({                                                                                         \
         static const struct duda_url_use duda_use_ = {__builtin_constant_p(name) ? (name) : NULL, __FILE__, \
                                                       __LINE__};                                            \
         __attribute__((used,                                                                                \
                        section("duda_url_uses"))) static const struct duda_url_use *const duda_use_ref_ =   \
             &duda_use_;                                                                                     \
     }),                                                                                                     \
     duda_url_for(d, name, __VA_ARGS__))
#endif

/**
 * Returns the URL of a path within the service: prepends the prefix at which [ROUTES] mounts the service.
 * `path` begins with a slash and is already escaped; any other URL is returned unchanged. For the path of a
 * route, use duda_url_for(), or `{{url_for}}` in a template, which add the prefix themselves.
 *
 *     return duda_redirect(d, 303, duda_mount_url(d, MK_STR("/manual/index.html")));
 *
 * The result is valid until the handler returns, and absent if memory is exhausted.
 */
MK_API mk_str duda_mount_url(struct duda_ctx *d, mk_str path) MK_API_MUST_USE;

/**
 * Returns the absolute URL of a path on this site, such as a result of duda_url_for(), for mails and feeds:
 * prepends `PublicUrl` of [DUDA]. An absolute URL is returned unchanged. The host in the request is not used,
 * because a client may send any host.
 *
 *     mk_str url = duda_absolute_url(d, duda_url_for(d, "show_item", duda_value_members({"id", duda_value_integer(7)})));
 *
 * The result is valid until the handler returns. It is absent if memory is exhausted or, with an entry in the
 * error log, if `PublicUrl` is not set.
 */
MK_API mk_str duda_absolute_url(struct duda_ctx *d, mk_str path) MK_API_MUST_USE;

/**
 * Builds the URL of this request with one query parameter changed, for links to another page, sort order or
 * filter: `value` replaces all values of the parameter `name`; an absent value removes the parameter. All
 * other parameters stay. For a request to `/items?q=tea&page=2`, the URL is "/items?q=tea&page=3":
 *
 *     mk_str url = duda_url_with_query(d, "page", MK_STR("3"));
 *
 * The URL is a path as the client sent it, including the prefix from [ROUTES], and contains no character that
 * is invalid in a URL. It is valid until the handler returns; absent without a request, or if memory is
 * exhausted.
 */
MK_API mk_str duda_url_with_query(struct duda_ctx *d, const char *name, mk_str value) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
