/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include "hash.h"

#include <crypt.h>
#include <monkey/text.h>

enum { SHA1_TEXT_LEN = 28 };

const struct auth_hash_scheme auth_hash_schemes[] = {
    {"yescrypt", "$y$", 43, true, SIZE_MAX, 0},
    {"bcrypt", "$2b$", 53, true, 72, 10},
    {"sha512", "$6$", 86, true, SIZE_MAX, 100000},
    {"sha256", "$5$", 43, true, SIZE_MAX, 100000},
    {"bcrypt", "$2y$", 53, false, 72, 0},
    {"bcrypt", "$2a$", 53, false, 72, 0},
    {"scrypt", "$7$", 43, false, SIZE_MAX, 0},
    {"gost-yescrypt", "$gy$", 43, false, SIZE_MAX, 0},
    {NULL, NULL, 0, false, 0, 0},
};

const struct auth_hash_scheme *auth_hash_scheme_find(mk_str name)
{
    for (const struct auth_hash_scheme *k = auth_hash_schemes; k->name; k++)
        if (k->can_make && mk_str_eq_nocase(name, mk_str_from_c(k->name)))
            return k;
    return NULL;
}

/* Returns the base64 text after {SHA1} or {SHA}; absent for another scheme. */
static mk_str strip_sha1_prefix(mk_str hash)
{
    static const mk_str prefixes[] = {MK_STR_INIT("{SHA1}"), MK_STR_INIT("{SHA}")};
    for (size_t i = 0; i < MK_LEN(prefixes); i++)
        if (mk_str_starts(hash, prefixes[i]))
            return mk_str_skip(hash, prefixes[i].len);
    return mk_str_of(NULL, 0);
}

bool auth_hash_is_fast(mk_str hash)
{
    return strip_sha1_prefix(hash).p != NULL;
}

static const char *sha1_error(mk_str text)
{
    char buf[AUTH_SHA1_LEN + 8];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf);
    bool good = text.len == SHA1_TEXT_LEN && mk_base64_decode(&b, text) && b.len == AUTH_SHA1_LEN;
    return good ? NULL : "{SHA1} must be followed by 20 bytes in base64";
}

const char *auth_hash_error(mk_str hash)
{
    char setting[AUTH_HASH_TEXT_MAX + 1];
    if (auth_hash_is_fast(hash))
        return sha1_error(strip_sha1_prefix(hash));
    const struct auth_hash_scheme *k = auth_hash_schemes;
    while (k->name && !mk_str_starts(hash, mk_str_from_c(k->prefix)))
        k++;
    if (!k->name)
        return "unknown hash: expected yescrypt, bcrypt, sha512, sha256 ($y$, $2b$, $6$, $5$) or {SHA1}";
    if (hash.len > AUTH_HASH_TEXT_MAX || hash.len - mk_str_find_last(hash, '$') != k->tail + 1)
        return "the hash is not complete";
    memcpy(setting, hash.p, hash.len);
    setting[hash.len] = '\0';
    int fault = crypt_checksalt(setting);
    return fault == CRYPT_SALT_OK || fault == CRYPT_SALT_METHOD_LEGACY
               ? NULL
               : "libcrypt does not support this hash";
}

bool auth_verify_fast(mk_str hash, mk_str password)
{
    uint8_t sum[AUTH_HASH_MAX];
    char buf[SHA1_TEXT_LEN + 8];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf);
    auth_hash_joined(AUTH_SHA1, &password, 1, sum);
    mk_base64_encode(&b, mk_str_of((const char *)sum, AUTH_SHA1_LEN));
    bool equal = !b.failed && mk_consttime_eq(strip_sha1_prefix(hash), mk_buf_str(&b));
    explicit_bzero(buf, sizeof buf);
    explicit_bzero(sum, sizeof sum);
    return equal;
}

bool auth_verify(const char *hash, const char *password, struct crypt_data *data)
{
    const char *made = crypt_rn(password, hash, data, (int)sizeof *data);
    return made && mk_consttime_eq(mk_str_from_c(made), mk_str_from_c(hash));
}
