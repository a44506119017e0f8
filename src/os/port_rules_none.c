/* SPDX-License-Identifier: Apache-2.0 */
/* A server without rules for TCP ports (MK_FULL_SANDBOX=OFF). */
#include "os/port_rules.h"

bool mk_port_rules_are_built(void)
{
    return false;
}

mk_err mk_port_rules_open(struct mk_port_rules *r, unsigned uses)
{
    r->fd = -1;
    return uses ? -EOPNOTSUPP : 0;
}

mk_err mk_port_rules_allow(struct mk_port_rules *r, enum mk_port_use use, uint16_t port)
{
    (void)r, (void)use, (void)port;
    return 0;
}

mk_err mk_port_rules_enforce(struct mk_port_rules *r)
{
    (void)r;
    return 0;
}
