/* SPDX-License-Identifier: Apache-2.0 */
/* Parses values of Authorization: the output has no control characters, and lies within the input or the
 * buffer. */
#include "base/assert.h"
#include "plugins/auth/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 16 };

static bool is_within(mk_str s, const char *buffer, size_t cap)
{
    return s.p >= buffer && s.p <= buffer + cap && s.len <= (size_t)(buffer + cap - s.p);
}

static void check_basic(mk_str text)
{
    char buffer[AUTH_BASIC_BUF_SIZE];
    struct auth_basic b;
    if (!auth_basic_parse(text, buffer, &b))
        return;
    MK_ASSERT(is_within(b.user, buffer, sizeof buffer) && is_within(b.password, buffer, sizeof buffer - 1));
    MK_ASSERT(b.password.p[b.password.len] == '\0' && b.password.len <= AUTH_PASSWORD_MAX);
    MK_ASSERT(mk_str_find(b.user, ':') == MK_STR_NONE);
    MK_ASSERT(auth_has_no_controls(b.user) && auth_has_no_controls(b.password));
}

static void check_digest(mk_str text)
{
    static char buffer[ROOM];
    struct mk_buf b = mk_buf_fixed(buffer, text.len < ROOM ? text.len : ROOM);
    struct auth_digest d;
    if (!auth_digest_parse(text, &b, &d))
        return;
    for (unsigned i = 0; i < AUTH_PARAMS; i++) {
        mk_str s = d.at[i];
        MK_ASSERT(!s.p || is_within(s, text.p, text.len) || is_within(s, buffer, b.cap));
        MK_ASSERT(auth_has_no_controls(s));
    }
    MK_ASSERT(d.at[AUTH_USERNAME].p && d.at[AUTH_NC].p && d.at[AUTH_RESPONSE].p);
}

static void check_hex(mk_str text)
{
    uint8_t out[32];
    for (size_t n = 0; n <= sizeof out; n++)
        if (auth_hex_decode(text, out, n))
            MK_ASSERT(text.len == 2 * n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str all = mk_str_of((const char *)data, size), rest;
    mk_str scheme = auth_scheme_split(all, &rest);
    MK_ASSERT(scheme.len <= size && (!rest.p || is_within(rest, all.p, size)));
    check_basic(rest);
    check_digest(rest);
    check_hex(rest);
    return 0;
}
