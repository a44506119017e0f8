/* SPDX-License-Identifier: Apache-2.0 */
/* One bit after the other: it is for a few hundred bytes, once a connection, and only where a proxy asks. */
#include "crc32c.h"

#define POLYNOMIAL 0x82f63b78u

uint32_t security_crc32c(uint32_t before, mk_str text)
{
    uint32_t crc = ~before;
    for (size_t i = 0; i < text.len; i++) {
        crc ^= (unsigned char)text.p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    }
    return ~crc;
}
