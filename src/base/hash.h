/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3, a keyed hash for tables with keys chosen by untrusted peers (plugins may call mk_hash() as
 * well), and a cheaper hash for other tables. */
#ifndef MK_BASE_HASH_H
#define MK_BASE_HASH_H

#include <monkey/text.h>

#include "base/str.h"

/* Returns a random key that no outsider can guess. */
struct mk_hash_key mk_hash_key_random(void);

/* Hashes keys of tables whose keys come from a configuration or a file system: clients look up keys but
 * cannot insert them. Four times faster than mk_hash(), but not designed to resist collision attacks. */
uint64_t mk_hash_trusted(const struct mk_hash_key *key, mk_str s);

#endif
