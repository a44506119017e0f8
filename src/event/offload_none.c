/* SPDX-License-Identifier: Apache-2.0 */
/* A server without threads (MK_THREADS=OFF): callers do the work themselves, as when no thread can be
 * started. */
#include "event/offload.h"

mk_err mk_offload_init(struct mk_offload *h, struct mk_loop *loop)
{
    *h = (struct mk_offload){.loop = loop, .wakeup_fd = -1};
    return 0;
}

void mk_offload_fini(struct mk_offload *h)
{
    (void)h;
}

bool mk_offload_submit(struct mk_offload *h, struct mk_offload_job *job)
{
    (void)h, (void)job;
    return false;
}
