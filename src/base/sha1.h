/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (RFC 3174), for what asks for it by name, as the handshake of WebSocket does. It protects nothing. */
#ifndef MK_BASE_SHA1_H
#define MK_BASE_SHA1_H

#include "base/str.h"

enum { MK_SHA1_LEN = 20 };

void mk_sha1(mk_str text, unsigned char out[MK_SHA1_LEN]);

#endif
