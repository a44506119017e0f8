/* SPDX-License-Identifier: Apache-2.0 */
/* KeyFile of an [UPSTREAM]: a secret that several machines share. */
#ifndef MK_UPSTREAM_KEYFILE_H
#define MK_UPSTREAM_KEYFILE_H

#include <monkey/config.h>
#include <monkey/text.h>

/* False: it cannot be read, or is too short, which has been reported at the section. */
bool mk_keyfile_read(struct mk_config *config, const void *section, mk_str path, struct mk_hash_key *out);

#endif
