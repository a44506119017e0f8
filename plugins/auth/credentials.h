/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the Authorization header. Independent of users and requests. */
#ifndef AUTH_CREDENTIALS_H
#define AUTH_CREDENTIALS_H

#include <monkey/buf.h>

enum {
    AUTH_NAME_MAX = 255,
    AUTH_PASSWORD_MAX = 511, /* the limit of crypt(3) */
    AUTH_BASIC_BUF_SIZE =
        AUTH_NAME_MAX + 1 + AUTH_PASSWORD_MAX + 1 + 8 /* decoders write three bytes at a time */
};

/* Splits "Scheme rest" and returns the scheme; *rest is absent if nothing follows. */
mk_str auth_scheme_split(mk_str value, mk_str *rest);

/* Basic credentials (RFC 7617). Both strings are in the decode buffer; the password is NUL-terminated. */
struct auth_basic {
    mk_str user, password;
};
bool auth_basic_parse(mk_str text, char buf[AUTH_BASIC_BUF_SIZE], struct auth_basic *out);

/* The parameters of RFC 7616, section 3.4. */
enum auth_param {
    AUTH_USERNAME,
    AUTH_USERNAME_EXT, /* username*, as sent; auth_digest_parse() stores the decoded name in AUTH_USERNAME
                        */
    AUTH_REALM,
    AUTH_NONCE,
    AUTH_URI,
    AUTH_RESPONSE,
    AUTH_ALGORITHM,
    AUTH_CNONCE,
    AUTH_QOP,
    AUTH_NC,
    AUTH_USERHASH,
    AUTH_PARAMS
};
struct auth_digest {
    mk_str at[AUTH_PARAMS]; /* absent strings for missing parameters */
};
/* Returns false if malformed: repeated or missing parameters, unterminated quotes. `buf` is a fixed buffer of
 * at least text.len bytes for unescaped text; other values are slices of the text. */
bool auth_digest_parse(mk_str text, struct mk_buf *buf, struct auth_digest *out);

/* Decodes exactly `size` bytes from hexadecimal. */
bool auth_hex_decode(mk_str text, uint8_t *out, size_t size);
/* Returns whether a name or password has no control characters (RFC 7617, section 2). */
bool auth_has_no_controls(mk_str text);

#endif
