/* SPDX-License-Identifier: Apache-2.0 */
/* Parses PROXY protocol headers: the parser waits for the rest of a truncated header, and reads nothing after
 * a header. */
#include "security/proxy_protocol.c"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEEN_MAX = 400 };

static bool is_same(const struct security_proxy_header *a, const struct security_proxy_header *b)
{
    return a->has_peer == b->has_peer && memcmp(a->peer.ip, b->peer.ip, 16) == 0 &&
           a->peer.port == b->peer.port && a->peer.is_unix == b->peer.is_unix;
}

static void check_header(mk_str in, int n, const struct security_proxy_header *whole)
{
    struct security_proxy_header part;
    MK_ASSERT((size_t)n <= in.len && n <= SECURITY_PROXY_V2_MAX);
    MK_ASSERT(whole->has_peer || (!whole->peer.is_unix && !whole->peer.port));
    MK_ASSERT(security_proxy_header_parse(mk_str_first(in, (size_t)n), &part) == n && is_same(whole, &part));
    for (size_t len = 0; len < (size_t)n && len < SEEN_MAX; len++)
        MK_ASSERT(security_proxy_header_parse(mk_str_first(in, len), &part) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str in = mk_str_of((const char *)data, size);
    struct security_proxy_header whole, part;
    int n = security_proxy_header_parse(in, &whole);
    MK_ASSERT(n >= -1 && (n < 0) == (whole.wrong != NULL));
    if (n > 0)
        check_header(in, n, &whole);
    MK_ASSERT(n != 0 || size < SECURITY_PROXY_V2_MAX);
    /* Invalid input stays invalid, whatever follows. */
    for (size_t len = 0; n >= 0 && len < size && len < SEEN_MAX; len++)
        MK_ASSERT(security_proxy_header_parse(mk_str_first(in, len), &part) >= 0);
    return 0;
}
