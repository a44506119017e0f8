/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3: a keyed hash for tables with keys chosen by untrusted peers. Plugins may call mk_hash()
 * too. And a cheaper one for other tables. */
#ifndef MK_BASE_HASH_H
#define MK_BASE_HASH_H

#include <monkey/text.h>

#include "base/str.h"

/* A random key that no outsider can guess. */
struct mk_hash_key mk_hash_key_random(void);

/* For tables whose keys come out of a configuration or a file system: peers look texts up, but put none in.
 * It costs a quarter of mk_hash(), and no proof tells how hard it is to make texts meet without the key. */
uint64_t mk_hash_trusted(const struct mk_hash_key *key, mk_str s);

#endif
