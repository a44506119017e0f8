/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP methods, and header fields with the parties that may set them. */
#ifndef MONKEY_HTTP_H
#define MONKEY_HTTP_H

#include <monkey/str.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The request methods of RFC 9110, section 9.3, and PATCH (RFC 5789). Later releases may add methods: treat
 * an unexpected value as MK_METHOD_UNKNOWN. */
enum mk_method {
    MK_METHOD_UNKNOWN, /**< a valid token that is none of these methods */
    MK_METHOD_GET,
    MK_METHOD_HEAD,
    MK_METHOD_POST,
    MK_METHOD_PUT,
    MK_METHOD_DELETE,
    MK_METHOD_CONNECT,
    MK_METHOD_OPTIONS,
    MK_METHOD_TRACE,
    MK_METHOD_PATCH,
};

/** A set of methods: `MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_HEAD)`. */
#define MK_METHOD_BIT(method) (1u << (method))

/** Returns the method of that name. Names are case-sensitive: "get" is MK_METHOD_UNKNOWN. */
MK_API enum mk_method mk_method_find(mk_str name);

/** May a request with this method be repeated if the connection fails before the response? (RFC 9110,
 * section 9.2.2) */
static inline bool mk_method_is_idempotent(enum mk_method method)
{
    const unsigned idempotent = MK_METHOD_BIT(MK_METHOD_GET) | MK_METHOD_BIT(MK_METHOD_HEAD) |
                                MK_METHOD_BIT(MK_METHOD_OPTIONS) | MK_METHOD_BIT(MK_METHOD_TRACE) |
                                MK_METHOD_BIT(MK_METHOD_PUT) | MK_METHOD_BIT(MK_METHOD_DELETE);
    return (idempotent >> method & 1) != 0;
}

/** The party that may set a request header. A gateway forwards the client's headers to a program, and
 * sets the others itself or omits them. Programs that turn names into variables, such as CGI programs,
 * confuse `X_Real_IP` with `X-Real-IP`: a name that resembles a header reserved for another party is
 * MK_ROLE_NONE. */
enum mk_header_role {
    MK_ROLE_CLIENT,       /**< the client */
    MK_ROLE_UNDERSCORE,   /**< the client, but the name has an underscore: programs may confuse it with
                               another name */
    MK_ROLE_HOP,          /**< hop-by-hop: applies to a single connection (RFC 9110, section 7.6.1) */
    MK_ROLE_CONNECTION,   /**< hop-by-hop, and lists other hop-by-hop headers: Connection */
    MK_ROLE_FRAMING,      /**< hop-by-hop, and delimits the body */
    MK_ROLE_HOST,         /**< Host */
    MK_ROLE_VIA,          /**< proxies, each of which appends to it: Via */
    MK_ROLE_MAX_FORWARDS, /**< proxies, each of which decrements it: Max-Forwards */
    MK_ROLE_DESTINATION,  /**< the client; contains a URL of this server: Destination (RFC 4918) */
    MK_ROLE_FORWARDED,    /**< the server, to describe the client's request: Forwarded, X-Forwarded-*,
                               X-Real-IP, Client-IP */
    MK_ROLE_CERTIFICATE,  /**< the server, to describe a verified certificate: Client-Cert (RFC 9440) */
    MK_ROLE_NONE,         /**< no party: Proxy, Proxy-Authorization, and names that resemble a reserved one */
    MK_ROLE_SERVER,       /**< the server: a hook has set the header with mk_request_set_header() or
                               mk_request_add_header() */
};

/** A header field, or a CGI meta-variable (RFC 3875, section 4.1). */
struct mk_header {
    mk_str name, value;
};

/**
 * The reason phrase of a status: "Not Found"; absent if Monkey does not know the status.
 *
 *     mk_str phrase = mk_status_phrase(404); // "Not Found"
 */
MK_API mk_str mk_status_phrase(unsigned status);
/** A sentence that explains an error status to the developer of a client, as in the problem details of
 * `ErrorFormat json`: "The resource does not exist." An unknown status gets a general explanation of its
 * class. Never absent. */
MK_API mk_str mk_status_detail(unsigned status);

#ifdef __cplusplus
}
#endif

#endif
