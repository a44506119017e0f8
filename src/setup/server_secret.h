/* SPDX-License-Identifier: Apache-2.0 */
/* A secret shared by all processes of the server, kept across reloads and upgrades of the program. */
#ifndef MK_SETUP_SERVER_SECRET_H
#define MK_SETUP_SERVER_SECRET_H

#include <monkey/text.h>

#include "setup/shared_state.h"

enum { MK_SERVER_SECRET_LEN = 32, MK_SERVER_SECRET_TEXT = 2 * MK_SERVER_SECRET_LEN + 1 };

/* Derives a key for one purpose; other keys cannot be derived from it. Call it in the master: workers forked
 * later share the secret. False: out of memory. */
bool mk_server_secret_derive_key(struct mk_shared_state *shared, mk_str purpose,
                                 struct mk_hash_key *out) MK_MUST_USE;

/* Writes the secret for the successor process in hexadecimal, NUL-terminated; empty if there is no secret
 * yet. */
void mk_server_secret_export(struct mk_shared_state *shared, char out[MK_SERVER_SECRET_TEXT]);
/* Imports the secret in the successor, before its first use. Ignores invalid text. */
void mk_server_secret_import(struct mk_shared_state *shared, mk_str text);

#endif
