/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges lie inside the representation and do not touch. The input is a size in digits, a blank, and the
 * value of Range. */
#include "base/assert.h"
#include "base/num.h"
#include "http/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 8 };

/* Whether there is at least one byte between the two ranges. */
static bool are_apart(struct mk_range a, struct mk_range b)
{
    return a.last < b.first ? b.first - a.last > 1 : a.first > b.last && a.first - b.last > 1;
}

static void check(mk_str value, uint64_t size, unsigned max)
{
    struct mk_range out[MAX];
    int n = mk_range_parse(value, size, out, max);
    MK_ASSERT(n == -416 || (n >= 0 && (unsigned)n <= max));
    for (int i = 0; i < n; i++) {
        MK_ASSERT(out[i].first <= out[i].last && out[i].last < size);
        for (int j = 0; j < i; j++)
            MK_ASSERT(are_apart(out[i], out[j]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str value = mk_str_of((const char *)data, size), first = mk_str_cut(&value, ' ');
    uint64_t n;
    if (!mk_num_parse(first, &n))
        return 0;
    for (unsigned max = 0; max <= MAX; max += 4)
        check(value, n, max);
    return 0;
}
