/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords with libxcrypt: hashed with its best method, verified with any. */
#include <crypt.h>
#include <duda/crypto.h>
#include <errno.h>
#include <monkey/mem.h>
#include <openssl/crypto.h>

_Static_assert(DUDA_PASSWORD_SIZE == CRYPT_OUTPUT_SIZE, "size of libxcrypt's output");
_Static_assert(DUDA_PASSWORD_MAX < CRYPT_MAX_PASSPHRASE_SIZE, "libxcrypt's longest pass phrase");

static bool is_valid_crypt_input(mk_str s, size_t max)
{
    return s.len && s.len <= max && !memchr(s.p, 0, s.len);
}

static int hash_password_with_setting(mk_str password, const char *setting, char out[DUDA_PASSWORD_SIZE])
{
    struct crypt_data *buf = mk_mem_zalloc(1, sizeof *buf);
    char text[DUDA_PASSWORD_MAX + 1] = {0};
    if (!buf)
        return -ENOMEM;
    memcpy(text, password.p, password.len);
    const char *result = crypt_rn(text, setting, buf, sizeof *buf);
    if (result)
        memccpy(out, result, 0, DUDA_PASSWORD_SIZE);
    int e = result ? 0 : errno == ENOMEM ? -ENOMEM : -EINVAL;
    OPENSSL_cleanse(text, sizeof text);
    OPENSSL_cleanse(buf, sizeof *buf);
    mk_mem_free(buf);
    return e;
}

int duda_password_hash_blocking(mk_str password, char out[DUDA_PASSWORD_SIZE])
{
    char random[32], setting[CRYPT_GENSALT_OUTPUT_SIZE];
    if (!is_valid_crypt_input(password, DUDA_PASSWORD_MAX))
        return -EINVAL;
    mk_random(random, sizeof random);
    if (!crypt_gensalt_rn("$y$", 0, random, sizeof random, setting, sizeof setting))
        return -ENOMEM;
    return hash_password_with_setting(password, setting, out);
}

bool duda_password_verify_blocking(mk_str password, mk_str hash)
{
    /* Verifying this dummy hash takes as long as verifying a hash from duda_password_hash_blocking(). */
    static const char nothing[] = "$y$j9T$00000000000000000000..$";
    char setting[DUDA_PASSWORD_SIZE] = {0}, result[DUDA_PASSWORD_SIZE];
    bool is_user = is_valid_crypt_input(hash, sizeof setting - 1);
    if (!is_valid_crypt_input(password, DUDA_PASSWORD_MAX))
        return false;
    if (is_user)
        memcpy(setting, hash.p, hash.len);
    if (hash_password_with_setting(password, is_user ? setting : nothing, result))
        return false;
    return is_user && mk_consttime_eq(mk_str_from_c(result), hash);
}
