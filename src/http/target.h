/* SPDX-License-Identifier: Apache-2.0 */
/* The request target in its four forms (RFC 9112, section 3.2). What becomes of its path: http/path.h. */
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

/* All text points into the target, but for a path that absolute-form left out. */
struct mk_target {
    enum mk_target_form form;
    uint32_t port;    /* of the authority; MK_PORT_NONE if it has none */
    mk_str scheme;    /* absolute-form only, as it was written; else absent */
    mk_str authority; /* absolute-form and authority-form; else absent */
    mk_str host;      /* of the authority */
    mk_str path;      /* begins with '/', still encoded; "*" in asterisk-form; absent in authority-form */
    mk_str query;     /* what follows the first '?'; absent when there is none */
};

/* 0, or 400 for a target that is not of a form that its method allows, of another scheme than http or https,
 * with user information, with a fragment, or with characters other than visible ASCII. */
int mk_target_parse(enum mk_method method, mk_str text, struct mk_target *out) MK_MUST_USE;

/* Is it visible ASCII without '#', and not empty? mk_request_head_parse() answers with no other target. */
bool mk_target_is_visible(mk_str text);
/* The same for a text that is so. */
int mk_target_parse_checked(enum mk_method method, mk_str text, struct mk_target *out) MK_MUST_USE;

#endif
