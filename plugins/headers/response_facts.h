/* SPDX-License-Identifier: Apache-2.0 */
/* A response that rules are applied to, and what they want to know about it. */
#ifndef HEADERS_RESPONSE_FACTS_H
#define HEADERS_RESPONSE_FACTS_H

#include <monkey/request.h>
#include <monkey/response.h>

enum { TYPE_MAX = 127 }; /* RFC 6838, section 4.2 */

/* Path, type and status are those from before all rules; functions determine what is not always needed.
 */
struct response_facts {
    struct mk_request *request;
    struct mk_response *response;
    mk_str path;
    mk_str type;    /* absent: not looked up yet */
    uint64_t names; /* a bit for each field that is there, and perhaps more */
    bool knows_names;
    unsigned status;
    char type_room[TYPE_MAX];
};

void headers_response_facts_init(struct response_facts *f, struct mk_request *request,
                                 struct mk_response *response);
/* The media type; of a 304, that of the corresponding 200. */
mk_str headers_response_facts_type(struct response_facts *f);

/* Is there a field of that name? Most often not, and that is known at once. */
bool headers_response_has(struct response_facts *f, mk_str name);
/* Name and value live at least as long as the request. */
void headers_response_add(struct response_facts *f, mk_str name, mk_str value);
void headers_response_remove(struct response_facts *f, mk_str name);

#endif
