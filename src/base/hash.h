/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3: a keyed hash for tables with keys chosen by untrusted peers. Plugins may call mk_hash()
 * too. */
#ifndef MK_BASE_HASH_H
#define MK_BASE_HASH_H

#include <monkey/text.h>

#include "base/str.h"

/* A random key that no outsider can guess. */
struct mk_hash_key mk_hash_key_random(void);

#endif
