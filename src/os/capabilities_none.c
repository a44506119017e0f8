/* SPDX-License-Identifier: Apache-2.0 */
/* A server that drops only the capabilities that a change of the user drops (MK_FULL_SANDBOX=OFF). */
#include "os/capabilities.h"

uint64_t mk_capabilities_of_root_worker(bool binds_ports)
{
    (void)binds_ports;
    return UINT64_MAX;
}

void mk_capabilities_limit_gain(uint64_t keep)
{
    (void)keep;
}

mk_err mk_capabilities_limit(uint64_t keep)
{
    (void)keep;
    return 0;
}

void mk_capabilities_print(uint64_t set, struct mk_buf *out)
{
    (void)set, (void)out;
}
