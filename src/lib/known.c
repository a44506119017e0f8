/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/known.h"

bool mk_known_add(struct mk_server *s)
{
    (void)s;
    return true;
}

void mk_known_remove(const struct mk_server *s)
{
    (void)s;
}

bool mk_known_is(const struct mk_server *s)
{
    return s;
}
