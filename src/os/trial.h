/* SPDX-License-Identifier: Apache-2.0 */
/* Trying out what may crash whoever does it: in a process that we can do without. */
#ifndef MK_OS_TRIAL_H
#define MK_OS_TRIAL_H

#include "base/err.h"

/* Calls fn(ctx) in a copy of this process. 0: it came back. The number of the signal that ended it; SIGALRM:
 * it took longer than so many seconds. -ECANCELED: it ended the process. Another error: it could not be
 * tried. */
int mk_trial_run(void (*fn)(void *ctx), void *ctx, unsigned seconds) MK_MUST_USE;

#endif
