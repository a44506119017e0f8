/* SPDX-License-Identifier: Apache-2.0 */
#include "os/quiet.h"

void mk_quiet_begin(struct mk_quiet *q)
{
    (void)q;
}

void mk_quiet_end(struct mk_quiet *q, ssize_t n)
{
    (void)q;
    (void)n;
}
