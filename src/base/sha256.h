/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), also for builds without a TLS library. */
#ifndef MK_BASE_SHA256_H
#define MK_BASE_SHA256_H

#include <monkey/text.h>

#include "base/str.h"

enum { MK_SHA256_LEN = 32 };

#endif
