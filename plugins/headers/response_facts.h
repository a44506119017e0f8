/* SPDX-License-Identifier: Apache-2.0 */
/* A response to which rules are applied, with cached properties. */
#ifndef HEADERS_RESPONSE_FACTS_H
#define HEADERS_RESPONSE_FACTS_H

#include <monkey/request.h>
#include <monkey/response.h>

enum { TYPE_MAX = 127 }; /* RFC 6838, section 4.2 */

/* Path, type and status are those before any rule; functions compute rarely needed ones. */
struct response_facts {
    struct mk_request *request;
    struct mk_response *response;
    mk_str path;
    mk_str type;    /* absent: not looked up yet */
    uint64_t names; /* Bloom-style bitmap of header names: a superset */
    bool knows_names;
    unsigned status;
    char type_room[TYPE_MAX];
};

void headers_response_facts_init(struct response_facts *f, struct mk_request *request,
                                 struct mk_response *response);
/* The media type; of a 304, that of the corresponding 200. */
mk_str headers_response_facts_type(struct response_facts *f);

/* Does the response have that header? Usually not, which the bitmap shows at once. */
bool headers_response_has(struct response_facts *f, mk_str name);
/* Name and value live at least as long as the request. */
void headers_response_add(struct response_facts *f, mk_str name, mk_str value);
void headers_response_remove(struct response_facts *f, mk_str name);

#endif
