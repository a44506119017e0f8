/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts have no spans. Takes the place of attempt_parent.c in a build without MK_SPANS. */
#include "upstream/attempt_parent.h"

void mk_attempt_parent_set(struct mk_upstream_request *c)
{
    (void)c;
}
