/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SECURITY_CRC32C_H
#define SECURITY_CRC32C_H

#include <monkey/str.h>

/* The checksum of RFC 9260, appendix A, over texts that follow each other: begin with 0. */
uint32_t security_crc32c(uint32_t before, mk_str text);

#endif
