/* SPDX-License-Identifier: Apache-2.0 */
/* Parser for the four forms of the request target (RFC 9112, section 3.2). http/path.h decodes the path of a
 * target. */
#ifndef MK_HTTP_TARGET_H
#define MK_HTTP_TARGET_H

#include <monkey/http.h>

#include "http/authority.h"
#include "http/path.h"

enum mk_target_form {
    MK_TARGET_ORIGIN,    /* /where?q */
    MK_TARGET_ABSOLUTE,  /* http://host/where?q */
    MK_TARGET_AUTHORITY, /* host:port, for CONNECT only */
    MK_TARGET_ASTERISK,  /* *, for OPTIONS only */
};

/* All text points into the target, except for the "/" that replaces a path omitted in absolute-form. */
struct mk_target {
    enum mk_target_form form;
    uint32_t port;    /* port of the authority; MK_PORT_NONE: none */
    mk_str scheme;    /* absolute-form only, as written; else absent */
    mk_str authority; /* absolute-form and authority-form; else absent */
    mk_str host;      /* of the authority */
    mk_str path;      /* begins with '/', still encoded; "*" in asterisk-form; absent in authority-form */
    mk_str query;     /* after the first '?'; absent: none */
};

/* Returns 0. Returns 400 if the method does not allow the form of the target, or if the target has a scheme
 * other than http or https, user information, a fragment, or characters other than visible ASCII. */
int mk_target_parse(enum mk_method method, mk_str text, struct mk_target *out) MK_MUST_USE;

/* Is the text non-empty visible ASCII without '#'? mk_request_head_parse() returns no other target. */
bool mk_target_is_visible(mk_str text);
/* Like mk_target_parse(), but for text that mk_target_is_visible() accepts. */
int mk_target_parse_checked(enum mk_method method, mk_str text, struct mk_target *out) MK_MUST_USE;

#endif
