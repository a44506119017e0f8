/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/samples.h"

#include <stdlib.h>

#include "base/mem.h"

void wr_samples_init(struct wr_samples *s)
{
    *s = (struct wr_samples){0};
}

void wr_samples_fini(struct wr_samples *s)
{
    mk_mem_free(s->all);
    wr_samples_init(s);
}

void wr_samples_add(struct wr_samples *s, double number)
{
    if (!(number >= 0))
        return;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        double *more = mk_mem_realloc(s->all, cap * sizeof *more);
        if (!more) {
            s->failed = true;
            return;
        }
        s->all = more;
        s->cap = cap;
    }
    s->all[s->n++] = number;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct wr_range wr_samples_range(struct wr_samples *s)
{
    if (s->n == 0 || s->failed)
        return (struct wr_range){-1, -1, -1};
    qsort(s->all, s->n, sizeof *s->all, compare_doubles);
    return (struct wr_range){s->all[0], (s->all[(s->n - 1) / 2] + s->all[s->n / 2]) / 2, s->all[s->n - 1]};
}
