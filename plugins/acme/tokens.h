/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to http-01 (RFC 8555, section 8.3), which lie in a folder as files. */
#ifndef ACME_TOKENS_H
#define ACME_TOKENS_H

#include <monkey/str.h>
#include <sys/types.h>

enum { ACME_TOKEN_MAX = 128, ACME_ANSWER_MAX = 512 };

/* The token that the path asks for; absent: it asks for something else. */
mk_str acme_token_of(mk_str path);
/* Its answer: how long it is, 0: there is none. */
size_t acme_token_read(const char *folder, mk_str token, char room[ACME_ANSWER_MAX]);

#endif
