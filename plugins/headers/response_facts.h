/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a response to which rules are applied. */
#ifndef HEADERS_RESPONSE_FACTS_H
#define HEADERS_RESPONSE_FACTS_H

#include <monkey/request.h>
#include <monkey/response.h>

enum { TYPE_MAX = 127 }; /* RFC 6838, section 4.2 */

/* Path, type and status are those before any rule. Functions compute and cache rarely needed properties. */
struct response_facts {
    struct mk_request *request;
    struct mk_response *response;
    mk_str path;
    mk_str type;    /* absent: not determined yet */
    uint64_t names; /* bitmap of hashed header names: a set bit may also stand for another name */
    bool knows_names;
    unsigned status;
    char type_buf[TYPE_MAX];
};

void headers_response_facts_init(struct response_facts *f, struct mk_request *request,
                                 struct mk_response *response);
/* Returns the media type; for a 304, that of the corresponding 200. */
mk_str headers_response_facts_media_type(struct response_facts *f);

/* Returns whether the response has that header. Usually it does not, which the bitmap alone shows. */
bool headers_response_has(struct response_facts *f, mk_str name);
/* Adds a header. Its name and value must live at least as long as the request. */
void headers_response_add(struct response_facts *f, mk_str name, mk_str value);
void headers_response_remove(struct response_facts *f, mk_str name);

#endif
