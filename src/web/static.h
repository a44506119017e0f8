/* SPDX-License-Identifier: Apache-2.0 */
/* The handler that serves the files of a host. */
#ifndef MK_WEB_STATIC_H
#define MK_WEB_STATIC_H

#include "web/web.h"

/* It needs no data: host and files are the request's. */
extern const struct mk_handler mk_static;

/* What the handler would serve for a path, step by step, for `monkey explain`. */
enum mk_static_find {
    MK_STATIC_FILE,
    MK_STATIC_ELSEWHERE, /* an index file or fallback that another handler answers for: a script, most likely
                          */
    MK_STATIC_FOLDER_WITHOUT_SLASH, /* to be redirected */
    MK_STATIC_FOLDER_WITHOUT_INDEX,
    MK_STATIC_HIDDEN, /* a dot file */
    MK_STATIC_MISSING,
    MK_STATIC_FORBIDDEN, /* the system, or a symbolic link, says no */
    MK_STATIC_BUSY,      /* no descriptors or no memory left */
    MK_STATIC_BROKEN,    /* the disk or the file system failed */
};

struct mk_static_result {
    enum mk_static_find what;
    struct mk_open_file *file; /* of MK_STATIC_FILE: a reference, to be dropped */
    const struct mk_root *root;
    bool is_fallback; /* the page of a single-page application */
    mk_str elsewhere; /* the path of MK_STATIC_ELSEWHERE; absent when memory is out */
    mk_err error;     /* why, where there is one */
};

void mk_static_find(const struct mk_request *request, struct mk_static_result *found);

/* Serves an open file with conditions and ranges; takes over the reference. */
enum mk_verdict mk_static_serve(struct mk_request *request, struct mk_response *response,
                                struct mk_open_file *file);

/* For methods that are not ours: REWRITTEN if an index file or fallback leads to another handler, which may
 * know them; else NEXT. */
enum mk_verdict mk_static_reroute_to_other_handler(struct mk_request *request, struct mk_response *response);

/* Serves the file of the path and nothing in its place: no index, no fallback, no redirect. NEXT: there is
 * none. */
enum mk_verdict mk_static_serve_exact_file(struct mk_request *request, struct mk_response *response);

#endif
