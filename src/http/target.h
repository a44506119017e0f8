/* SPDX-License-Identifier: Apache-2.0 */
/* The request target: its four forms, its path as a file system may see it, and hosts with ports
 * (RFC 9112, section 3.2; RFC 3986, sections 3.2 and 5.2.4). */
#ifndef MK_HTTP_TARGET_H
#define MK_HTTP_TARGET_H

#include <monkey/http.h>

#include "base/str.h"

enum { MK_PORT_NONE = 0x10000 }; /* no port was given */

enum mk_target_form {
    MK_TARGET_ORIGIN,    /* /where?q */
    MK_TARGET_ABSOLUTE,  /* http://host/where?q */
    MK_TARGET_AUTHORITY, /* host:port, for CONNECT only */
    MK_TARGET_ASTERISK,  /* *, for OPTIONS only */
};

/* All text points into the target, but for a path that absolute-form left out. */
struct mk_target {
    enum mk_target_form form;
    mk_str scheme;    /* absolute-form only, as it was written; else absent */
    mk_str authority; /* absolute-form and authority-form; else absent */
    mk_str host;      /* of the authority */
    uint32_t port;    /* of the authority; MK_PORT_NONE if it has none */
    mk_str path;      /* begins with '/', still encoded; "*" in asterisk-form; absent in authority-form */
    mk_str query;     /* what stands behind the first '?'; absent when there is none */
};

/* 0, or 400 for a target that is not of a form that its method allows, of another scheme than http or https,
 * with user information, with a fragment, or with characters other than visible ASCII. */
int mk_target_parse(enum mk_method method, mk_str text, struct mk_target *out) MK_MUST_USE;

enum { MK_PATH_ENCODED_SLASH = 1u << 0 };

/* The path that a handler sees: percent escapes decoded once, repeated slashes merged, dot segments removed
 * (written as dots or as %2E), a slash at the end kept.
 *
 * `raw` begins with '/'. `out` has room for raw.len + 1 bytes; a NUL follows the path there. *flags is set:
 *
 *   MK_PATH_ENCODED_SLASH  there was a %2F. It is no separator: it stays in the path as "%2F". A handler that
 * maps paths to files must refuse such a path (404)
 *
 * 0, or 400 for a broken escape, for %00, for '..' above the root, and for a dot segment next to %2F. */
int mk_path_decode(mk_str raw, char *out, mk_str *path, unsigned *flags) MK_MUST_USE;

/* Splits `host[:port]`: a name of letters, digits, '-', '.' and '_', an IPv4 address, or an IPv6 address in
 * brackets, which stay part of *host. A port of no digits counts as none: *port = MK_PORT_NONE.
 * 0, or 400 for anything else, an empty host and ports above 65535 included. */
int mk_host_parse(mk_str authority, mk_str *host, uint32_t *port) MK_MUST_USE;

#endif
