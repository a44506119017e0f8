/* SPDX-License-Identifier: Apache-2.0 */
/* State files of renewed certificates: results are terminated strings and no negative numbers. */
#include <stdlib.h>
#include <string.h>

#include "tls/inventory_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_tls_inventory_members m;
    if (!mk_tls_inventory_state_parse(mk_str_of((const char *)data, size), &m))
        return 0;
    if (!memchr(m.why, '\0', sizeof m.why) || m.next < 0 || m.at < 0 || m.until < 0 || m.failures < 0)
        abort();
    return 0;
}
