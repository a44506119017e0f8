/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 with 128 bits: a proof that a record was written by who has the key. It needs no library. */
#ifndef DUDA_TEXT_MAC_H
#define DUDA_TEXT_MAC_H

#include <monkey/str.h>

enum { DUDA_MAC_KEY = 16, DUDA_MAC = 16 };

void duda_mac(const unsigned char key[DUDA_MAC_KEY], mk_str text, unsigned char out[DUDA_MAC]);

#endif
