/* SPDX-License-Identifier: Apache-2.0 */
/* Signed messages (RFC 7515) in the form that ACME requires (RFC 8555, section 6.2). */
#ifndef ACME_JWS_H
#define ACME_JWS_H

#include "key.h"

#include <monkey/json.h>

/* Appends base64url (RFC 4648, section 5) without padding. */
void acme_base64url_encode(struct mk_buf *out, mk_str bytes);
bool acme_base64url_decode(struct mk_buf *out, mk_str text);
bool acme_sha256(mk_str text, char digest[32]);

/* Appends TOKEN.THUMBPRINT (RFC 8555, section 8.1). */
bool acme_jws_key_authorization(struct mk_buf *out, const EVP_PKEY *key, const char *token);

/* Appends a message that is addressed to `url` and signed with a P-256 key (ES256). If `account` is NULL, the
 * message contains the key. */
bool acme_jws_sign(struct mk_buf *out, EVP_PKEY *key, const char *account, mk_str nonce, const char *url,
                   mk_str payload);
/* Binds the key to an external account (section 7.3.4); `secret` is the decoded key. */
bool acme_jws_write_eab(struct mk_json_writer *w, const EVP_PKEY *key, const char *id, mk_str secret,
                        const char *url);

#endif
