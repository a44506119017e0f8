/* SPDX-License-Identifier: Apache-2.0 */
/* http-01 responses (RFC 8555, section 8.3): files in a folder. */
#ifndef ACME_TOKENS_H
#define ACME_TOKENS_H

#include <monkey/str.h>
#include <sys/types.h>

enum { ACME_TOKEN_MAX = 128, ACME_RESPONSE_MAX = 512 };

/* Returns the token in the path; absent if the path is not that of a challenge. */
mk_str acme_token_from_path(mk_str path);
/* Reads the response to the challenge. Returns its length, or 0 if there is none. */
size_t acme_token_read_response(const char *folder, mk_str token, char buf[ACME_RESPONSE_MAX]);

#endif
