/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3: a keyed hash for tables that strangers fill. mk_hash() is offered to plugins, too. */
#ifndef MK_BASE_HASH_H
#define MK_BASE_HASH_H

#include <monkey/text.h>

#include "base/str.h"

/* A key that nobody outside can guess. */
struct mk_hash_key mk_hash_key_random(void);

#endif
