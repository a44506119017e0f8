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

/** A field line; or, for programs that get those of CGI (RFC 3875, section 4.1), a variable. */
struct mk_field_line {
    mk_str name, value;
};

#ifdef __cplusplus
}
#endif

#endif
