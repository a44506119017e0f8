/* SPDX-License-Identifier: Apache-2.0 */
/* A secret of the server, the same in all its processes, over reloads and upgrades of the program. */
#ifndef MK_SETTINGS_SERVER_SECRET_H
#define MK_SETTINGS_SERVER_SECRET_H

#include <monkey/text.h>

#include "settings/shared_state.h"

enum { MK_SERVER_SECRET_LEN = 32, MK_SERVER_SECRET_TEXT = 2 * MK_SERVER_SECRET_LEN + 1 };

/* A key for one purpose, from which no other one can be found. Before the first use of anything else in
 * `shared`, in the master. False: no memory. */
bool mk_server_secret_derive_key(struct mk_shared_state *shared, mk_str purpose,
                                 struct mk_hash_key *out) MK_MUST_USE;

/* For the successor: hexadecimal, with a NUL. Empty: there is none yet. */
void mk_server_secret_export(struct mk_shared_state *shared, char out[MK_SERVER_SECRET_TEXT]);
/* In the successor, before the secret is used. Ignores what mk_server_secret_export() did not write. */
void mk_server_secret_import(struct mk_shared_state *shared, mk_str text);

#endif
