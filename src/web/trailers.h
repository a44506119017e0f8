/* SPDX-License-Identifier: Apache-2.0 */
/* Fields behind the content of a request or a response, in the arena of the request. */
#ifndef MK_WEB_TRAILERS_H
#define MK_WEB_TRAILERS_H

#include "base/arena.h"
#include "base/err.h"
#include "http/header.h"

struct mk_request;
struct mk_response;

struct mk_trailers {
    size_t n;
    size_t bytes; /* that all of them take as lines */
    struct mk_header_field *at;
};

/* Adds one to a list that may be NULL yet. Neither copied nor checked. False when memory is out. */
bool mk_trailers_add(struct mk_trailers **t, struct mk_arena *a, mk_str name, mk_str value) MK_MUST_USE;

/* The head of the response is about to be written: its field Trailer announces the trailers that are known,
 * or goes where none can follow. */
void mk_trailers_announce(const struct mk_request *request, struct mk_response *r) MK_COLD;

#endif
