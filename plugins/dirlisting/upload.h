/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads: receives a form with files, and stores them in the folder of the listing. */
#ifndef DIRLISTING_UPLOAD_H
#define DIRLISTING_UPLOAD_H

#include "listing.h"
#include "upload_queue.h"

enum upload_mode { UPLOAD_OFF, UPLOAD_USERS, UPLOAD_ANYONE };

/* Can uploads be enabled in this build? */
extern const bool dirlisting_upload_is_built;

/* May the client of this request upload files? */
bool dirlisting_upload_is_allowed(const struct mk_request *request, const struct settings *settings);

/* The result of an upload. */
struct upload_result {
    /* 0: not complete, return MK_WAIT; 303: all files are stored; else the reason is in `note` */
    unsigned status;
    mk_str note; /* lives as long as the request */
};

/* Receives and stores the files. `folder` is a descriptor of the folder, which this function closes. Call it again, with
 * folder -1, while the result is not complete. */
struct upload_result dirlisting_upload_run(struct mk_request *request, const struct settings *settings,
                                           struct upload_queue *queue, int folder);
/* Has dirlisting_upload_run() been called for this request? */
bool dirlisting_upload_has_begun(const struct mk_request *request);

#endif
