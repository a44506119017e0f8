/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects `Upload` (MK_UPLOADS=OFF). */
#include <unistd.h>

#include "upload.h"

const bool dirlisting_upload_is_built = false;

bool dirlisting_upload_is_allowed(const struct mk_request *request, const struct settings *settings)
{
    (void)request;
    (void)settings;
    return false;
}

bool dirlisting_upload_has_begun(const struct mk_request *request)
{
    (void)request;
    return false;
}

struct upload_result dirlisting_upload_run(struct mk_request *request, const struct settings *settings,
                                           struct upload_queue *queue, int folder)
{
    (void)request;
    (void)settings;
    (void)queue;
    close(folder);
    return (struct upload_result){501, MK_STR("")};
}
