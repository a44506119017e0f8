/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/server_secret.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/sha1.h"

/* The secret in shared memory, which is page-aligned, as madvise() requires. */
struct server_secret {
    unsigned char bytes[MK_SERVER_SECRET_LEN];
    bool is_set;
};

static struct server_secret *get_secret_memory(struct mk_shared_state *shared)
{
    struct server_secret *s = mk_shared_state_get_memory(shared, MK_STR("server: secret"), sizeof *s);
    if (s)
        (void)madvise(s, sizeof *s, MADV_DONTDUMP); /* keeps the secret out of core dumps */
    return s;
}

/* Early in a device's boot there is no entropy yet: then mk_hash_key_random() is the best available. */
static void generate_secret(struct server_secret *s)
{
    if (getrandom(s->bytes, sizeof s->bytes, GRND_NONBLOCK) != (ssize_t)sizeof s->bytes)
        for (size_t i = 0; i + sizeof(struct mk_hash_key) <= sizeof s->bytes;
             i += sizeof(struct mk_hash_key)) {
            struct mk_hash_key key = mk_hash_key_random();
            memcpy(s->bytes + i, &key, sizeof key);
        }
    s->is_set = true;
}

bool mk_server_secret_derive_key(struct mk_shared_state *shared, mk_str purpose, struct mk_hash_key *out)
{
    struct server_secret *s = get_secret_memory(shared);
    unsigned char sum[MK_SHA1_LEN];
    struct mk_sha1 sha;
    if (!s)
        return false;
    if (!s->is_set)
        generate_secret(s);
    mk_sha1_init(&sha);
    mk_sha1_update(&sha, mk_str_of((const char *)s->bytes, sizeof s->bytes));
    mk_sha1_update(&sha, purpose);
    mk_sha1_final(&sha, sum);
    memcpy(out, sum, sizeof *out);
    return true;
}

void mk_server_secret_export(struct mk_shared_state *shared, char out[MK_SERVER_SECRET_TEXT])
{
    const struct server_secret *s = get_secret_memory(shared);
    struct mk_buf text = mk_buf_fixed(out, MK_SERVER_SECRET_TEXT - 1);
    if (s && s->is_set)
        mk_hex_encode(&text, mk_str_of((const char *)s->bytes, sizeof s->bytes));
    out[text.len] = '\0';
}

static int hex_digit_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void mk_server_secret_import(struct mk_shared_state *shared, mk_str text)
{
    struct server_secret *s = text.len == MK_SERVER_SECRET_TEXT - 1 ? get_secret_memory(shared) : NULL;
    if (!s)
        return;
    for (size_t i = 0; i < text.len; i++)
        if (hex_digit_value(text.p[i]) < 0)
            return;
    for (size_t i = 0; i < sizeof s->bytes; i++)
        s->bytes[i] =
            (unsigned char)(hex_digit_value(text.p[2 * i]) << 4 | hex_digit_value(text.p[2 * i + 1]));
    s->is_set = true;
}
