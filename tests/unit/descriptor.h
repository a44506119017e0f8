/* SPDX-License-Identifier: Apache-2.0 */
/* Closes descriptors that are still open when the test case ends. */
#ifndef MK_UNIT_DESCRIPTOR_H
#define MK_UNIT_DESCRIPTOR_H

#include "os/fd.h"
#include "unit/harness.h"

static inline void descriptor_end(void *p)
{
    mk_fd_close(p);
}

static inline void descriptor_begin(int *fd)
{
    harness_defer(descriptor_end, fd);
}

#endif
