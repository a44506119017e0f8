/* SPDX-License-Identifier: Apache-2.0 */
/* The static file handler. */
#ifndef MK_WEB_STATIC_H
#define MK_WEB_STATIC_H

#include "web/representation.h"
#include "web/web.h"

/* The handler has no data: host and files come from the request. */
extern const struct mk_handler mk_static;

/* The result of the lookup of a path, for the handler and for `monkey explain`. */
enum mk_static_find {
    MK_STATIC_FILE,
    MK_STATIC_ELSEWHERE, /* an index file or fallback for which another handler is responsible: usually a
                          * script */
    MK_STATIC_FOLDER_WITHOUT_SLASH, /* to be redirected to the path with a slash */
    MK_STATIC_FOLDER_WITHOUT_INDEX,
    MK_STATIC_HIDDEN, /* a dot file */
    MK_STATIC_MISSING,
    MK_STATIC_FORBIDDEN, /* permission denied, a symbolic link that is not allowed, or a special file */
    MK_STATIC_BUSY,      /* out of descriptors or memory */
    MK_STATIC_BROKEN,    /* disk or file system error */
};

struct mk_static_result {
    enum mk_static_find what;
    struct mk_open_file *file; /* for MK_STATIC_FILE: a reference that the caller must drop */
    const struct mk_root *root;
    bool is_fallback; /* fallback page of a single-page application */
    mk_str elsewhere; /* path for MK_STATIC_ELSEWHERE; absent: out of memory */
    mk_err error;     /* error of opening the path; 0: none */
};

void mk_static_find(const struct mk_request *request, struct mk_static_result *found);

/* Serves an open file, and evaluates preconditions and ranges. Takes ownership of the reference. */
enum mk_verdict mk_static_serve(struct mk_request *request, struct mk_response *response,
                                struct mk_open_file *file);

/* Like mk_static_serve(), but for a representation that outlives the request. */
enum mk_verdict mk_static_serve_representation(struct mk_request *request, struct mk_response *response,
                                               const struct mk_representation *r);

/* Handles a method that static does not support. MK_REWRITTEN: an index file or fallback leads to another
 * handler that may support it; otherwise MK_NEXT. */
enum mk_verdict mk_static_reroute_to_other_handler(struct mk_request *request, struct mk_response *response);

/* Serves exactly the file at the path: no index, fallback or redirect. MK_NEXT: no such file. */
enum mk_verdict mk_static_serve_exact_file(struct mk_request *request, struct mk_response *response);

#endif
