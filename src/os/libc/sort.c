/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces qsort() and qsort_r() of the C library in small static programs (MK_SMALL_LIBC): heapsort. */
#include <stdlib.h>

struct items {
    char *at;
    size_t size;
    int (*compare)(const void *a, const void *b, void *ctx);
    void *ctx;
};

static void swap_items(const struct items *s, size_t i, size_t j)
{
    char *a = s->at + i * s->size, *b = s->at + j * s->size;
    for (size_t k = 0; k < s->size; k++) {
        char c = a[k];
        a[k] = b[k];
        b[k] = c;
    }
}

static int compare_items(const struct items *s, size_t i, size_t j)
{
    return s->compare(s->at + i * s->size, s->at + j * s->size, s->ctx);
}

/* Moves the item down until none of its children in [0, n) is greater. */
static void sift_down(const struct items *s, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && compare_items(s, child, child + 1) < 0)
            child++;
        if (compare_items(s, i, child) >= 0)
            return;
        swap_items(s, i, child);
    }
}

void qsort_r(void *base, size_t n, size_t size, int (*compare)(const void *a, const void *b, void *ctx),
             void *ctx)
{
    struct items s = {.at = base, .size = size, .compare = compare, .ctx = ctx};
    for (size_t i = n / 2; i-- > 0;)
        sift_down(&s, i, n);
    for (size_t i = n; i-- > 1;) {
        swap_items(&s, 0, i);
        sift_down(&s, 0, i);
    }
}

struct plain_order {
    int (*compare)(const void *a, const void *b);
};

static int compare_plainly(const void *a, const void *b, void *ctx)
{
    return ((const struct plain_order *)ctx)->compare(a, b);
}

void qsort(void *base, size_t n, size_t size, int (*compare)(const void *a, const void *b))
{
    struct plain_order order = {compare};
    qsort_r(base, n, size, compare_plainly, &order);
}
