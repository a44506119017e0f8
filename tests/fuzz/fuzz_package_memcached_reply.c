/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are parsed as Memcached replies or rejected, regardless of how they are split. */
#include <errno.h>
#include <memcached/reply.h>

#include "base/assert.h"

enum { VALUE_MAX = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(mk_str in, const struct memcached_reply *r, ssize_t n)
{
    struct memcached_reply less;
    MK_ASSERT(n == -EPROTO || n == -EMSGSIZE || (n >= 0 && (size_t)n <= in.len));
    if (n <= 0)
        return;
    MK_ASSERT(!r->value.p || (r->value.p >= in.p && r->value.p + r->value.len <= in.p + n));
    MK_ASSERT(r->word != MEMCACHED_VALUE || r->value.len <= VALUE_MAX);
    for (size_t cut = (size_t)n > 8 ? (size_t)n - 8 : 0; cut < (size_t)n; cut++)
        MK_ASSERT(memcached_reply_parse(mk_str_first(in, cut), VALUE_MAX, &less) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memcached_reply r;
    mk_str in = mk_str_of((const char *)data, size);
    ssize_t n;
    do {
        n = memcached_reply_parse(in, VALUE_MAX, &r);
        check(in, &r, n);
        in = mk_str_skip(in, n > 0 ? (size_t)n : 0);
    } while (n > 0);
    return 0;
}
