/* SPDX-License-Identifier: Apache-2.0 */
/* Trailers of a request or response, in the request's arena. */
#ifndef MK_WEB_TRAILERS_H
#define MK_WEB_TRAILERS_H

#include "base/arena.h"
#include "base/err.h"
#include "http/header.h"

struct mk_request;
struct mk_response;

struct mk_trailers {
    size_t n;
    size_t bytes; /* total length as header lines */
    struct mk_header_field *at;
};

/* Appends a trailer to a list that may still be NULL. The name and value are neither copied nor validated.
 * False: out of memory. */
bool mk_trailers_add(struct mk_trailers **t, struct mk_arena *a, mk_str name, mk_str value) MK_MUST_USE;

/* Called before the response head is written: sets the Trailer header to the known trailers, or removes it if
 * no trailers can follow. */
void mk_trailers_announce(const struct mk_request *request, struct mk_response *r) MK_COLD;

#endif
