/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/known.h"

bool mk_known_add(const void *p)
{
    (void)p;
    return true;
}

void mk_known_remove(const void *p)
{
    (void)p;
}

bool mk_known_is(const void *p)
{
    return p;
}
