/* SPDX-License-Identifier: Apache-2.0 */
/* A name that a client requests becomes part of a file name, of a query and of an order: a public name has only
 * harmless characters. */
#include <stdint.h>
#include <stdlib.h>

#include "acme/hostname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str name = mk_str_of((const char *)data, size);
    if (!acme_hostname_is_public(name))
        return 0;
    if (!acme_hostname_is_valid(name) || size < 3 || size > 245)
        abort();
    unsigned dots = 0;
    for (size_t i = 0; i < size; i++) {
        bool is_dot = data[i] == '.';
        dots += is_dot;
        if (!is_dot && data[i] != '-' && !(data[i] >= 'a' && data[i] <= 'z') &&
            !(data[i] >= '0' && data[i] <= '9'))
            abort();
        if (is_dot && (i == 0 || i + 1 == size || data[i - 1] == '.'))
            abort();
    }
    if (!dots || mk_str_ends(name, MK_STR(".arpa")))
        abort();
    return 0;
}
