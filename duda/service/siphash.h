/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 with 128-bit output: a MAC, which proves that the holder of the key wrote a record. Needs no
 * library. */
#ifndef DUDA_SERVICE_SIPHASH_H
#define DUDA_SERVICE_SIPHASH_H

#include <monkey/str.h>

enum { DUDA_SIPHASH_KEY = 16, DUDA_SIPHASH_TAG = 16 };

void duda_siphash128(const unsigned char key[DUDA_SIPHASH_KEY], mk_str text,
                     unsigned char out[DUDA_SIPHASH_TAG]);

#endif
