/* SPDX-License-Identifier: Apache-2.0 */
/* The words of HTTP that need numbers: its methods; and field lines. */
#ifndef MONKEY_HTTP_H
#define MONKEY_HTTP_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The request methods of RFC 9110, section 9.3, and PATCH (RFC 5789). */
enum mk_method {
    MK_METHOD_UNKNOWN, /**< a valid token that is none of the following */
    MK_METHOD_GET,
    MK_METHOD_HEAD,
    MK_METHOD_POST,
    MK_METHOD_PUT,
    MK_METHOD_DELETE,
    MK_METHOD_CONNECT,
    MK_METHOD_OPTIONS,
    MK_METHOD_TRACE,
    MK_METHOD_PATCH,
    MK_METHODS
};

/** A set of methods: `MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_HEAD)`. */
#define MK_METHOD_BIT(method) (1u << (method))

/** The method of that name. Names are case-sensitive: "get" is MK_METHOD_UNKNOWN. */
MK_API enum mk_method mk_method_find(mk_str name);

/** May a request with this method be repeated when a connection fails before the response? (RFC 9110, section 9.2.2) */
static inline bool mk_method_is_idempotent(enum mk_method method)
{
    const unsigned idempotent = MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_HEAD) |
                                MK_METHOD_BIT(MK_METHOD_OPTIONS) | MK_METHOD_BIT(MK_METHOD_TRACE) |
                                MK_METHOD_BIT(MK_METHOD_PUT) | MK_METHOD_BIT(MK_METHOD_DELETE);
    return (idempotent >> method & 1) != 0;
}

/** The party that may set a field of a request. What passes requests on to a program passes the client's fields, and says the
 * rest itself or not at all. Programs that turn names into variables, as those of CGI, take `X_Real_IP` for
 * `X-Real-IP`: a name that looks like one that is not the client's is MK_ROLE_NONE. */
enum mk_header_role {
    MK_ROLE_CLIENT,     /**< the client */
    MK_ROLE_UNDERSCORE, /**< the client, but the name has an underscore: programs may take it for another one */
    MK_ROLE_HOP,        /**< each of one connection for itself (RFC 9110, section 7.6.1) */
    MK_ROLE_CONNECTION,   /**< so, and it names others: Connection */
    MK_ROLE_FRAMING,      /**< so, and it says where the content ends */
    MK_ROLE_HOST,         /**< Host */
    MK_ROLE_VIA,          /**< proxies, each of which adds to it: Via */
    MK_ROLE_MAX_FORWARDS, /**< proxies, each of which lowers it: Max-Forwards */
    MK_ROLE_DESTINATION,  /**< the client, but it tells a URL of this server: Destination (RFC 4918) */
    MK_ROLE_FORWARDED, /**< the server, about client and path: Forwarded, X-Forwarded-*, X-Real-IP, Client-IP */
    MK_ROLE_CERTIFICATE, /**< the server, about a certificate that it has verified: Client-Cert (RFC 9440) */
    MK_ROLE_NONE,        /**< no one: Proxy, Proxy-Authorization, and what only looks like another name */
};

/** A field line; or, for programs that get those of CGI (RFC 3875, section 4.1), a variable. */
struct mk_header {
    mk_str name, value;
};

#ifdef __cplusplus
}
#endif

#endif
