/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of the output parsers: recorded outputs of real clients, and checks that hold for any
 * input. */
#ifndef MK_UNIT_WR_OUTPUT_H
#define MK_UNIT_WR_OUTPUT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/test.h"
#include "wr/client_type.h"

typedef bool reader(mk_str output, struct wr_result *out, const char **why);

/* Returns the file `name` of outputs/; valid until the next call. */
static inline mk_str output_of(const char *name)
{
    static char text[1 << 16];
    char path[1024];
    snprintf(path, sizeof path, "%s/unit/wr/outputs/%s", getenv("MK_TESTS_DIR"), name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be opened", path);
    size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    assert_true(len < sizeof text);
    return mk_str_of(text, len);
}

/* Expects that the text can be parsed. */
static inline struct wr_result read_text(reader *read, mk_str text)
{
    struct wr_result r;
    const char *why = NULL;
    if (!read(text, &r, &why))
        fail_msg("rejected: %s", why);
    return r;
}

static inline struct wr_result read_output(reader *read, const char *name)
{
    return read_text(read, output_of(name));
}

/* Expects that all members have their initial values. */
static inline void assert_nothing_known(const struct wr_result *r)
{
    struct wr_result none;
    wr_result_init(&none);
    assert_memory_equal(&none, r, sizeof none);
}

/* Expects that parsing fails, with a reason that contains `words`. */
static inline void expect_text_rejected(reader *read, mk_str text, const char *words)
{
    struct wr_result r = {0};
    const char *why = NULL;
    if (read(text, &r, &why))
        fail_msg("\"%.*s\" was read", MK_STR_ARG(mk_str_first(text, 200)));
    assert_contains(mk_str_from_c(why), words);
    assert_nothing_known(&r);
}

static inline void expect_output_rejected(reader *read, const char *name, const char *words)
{
    expect_text_rejected(read, output_of(name), words);
}

#define assert_close(actual, expected)                                                                       \
    do {                                                                                                     \
        double mk_a = (double)(actual), mk_e = (double)(expected);                                           \
        if (!(fabs(mk_a - mk_e) <= 1e-9 * fabs(mk_e)))                                                       \
            fail_msg(#actual " is %.17g, not %.17g", mk_a, mk_e);                                            \
    } while (0)

/* Compares all classes except `other`, in the order in which wrk prints them. */
#define assert_errors(r, connect_, read_, write_, timeout_, status_, other_)                                 \
    do {                                                                                                     \
        assert_int_equal((r).errors.connect, connect_);                                                      \
        assert_int_equal((r).errors.read, read_);                                                            \
        assert_int_equal((r).errors.write, write_);                                                          \
        assert_int_equal((r).errors.timeout, timeout_);                                                      \
        assert_int_equal((r).errors.status, status_);                                                        \
        assert_int_equal((r).errors.other, other_);                                                          \
    } while (0)

#define assert_latency(r, mean_, p50_, p75_, p90_, p95_, p99_, p999_, max_)                                  \
    do {                                                                                                     \
        const struct wr_latency *mk_l = &(r).latency_us;                                                     \
        assert_close(mk_l->mean, mean_);                                                                     \
        assert_close(mk_l->p50, p50_);                                                                       \
        assert_close(mk_l->p75, p75_);                                                                       \
        assert_close(mk_l->p90, p90_);                                                                       \
        assert_close(mk_l->p95, p95_);                                                                       \
        assert_close(mk_l->p99, p99_);                                                                       \
        assert_close(mk_l->p999, p999_);                                                                     \
        assert_close(mk_l->max, max_);                                                                       \
    } while (0)

/* Truncates the output at every length: the parser must reject it, or find the same numbers of requests and
 * errors as in the whole output. */
static inline void check_truncated_output(reader *read, const char *name)
{
    mk_str all = output_of(name);
    struct wr_result whole = read_text(read, all);
    for (size_t len = 0; len < all.len; len++) {
        struct wr_result part;
        const char *why = NULL;
        if (!read(mk_str_first(all, len), &part, &why)) {
            assert_non_null(why);
            assert_nothing_known(&part);
        } else if (part.requests != whole.requests ||
                   memcmp(&part.errors, &whole.errors, sizeof part.errors)) {
            fail_msg("%s: other numbers after %zu bytes", name, len);
        }
    }
}

#endif
