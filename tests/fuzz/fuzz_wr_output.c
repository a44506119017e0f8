/* SPDX-License-Identifier: Apache-2.0 */
/* Any output of a load client: each parser rejects it with a reason and no numbers, or reports finite,
 * non-negative numbers. An object that the JSON scanner finds lies inside the input, and the scanner finds
 * every object that the JSON parser of the tests accepts. */
#include <math.h>
#include <stddef.h>

#include "base/assert.h"
#include "unit/json.h"
#include "wr/client_type.h"
#include "wr/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(double value)
{
    MK_ASSERT(value == WR_UNKNOWN || (isfinite(value) && value >= 0));
}

static void check_result(const struct wr_result *r)
{
    const double values[] = {(double)r->bytes,        (double)r->errors.connect, (double)r->errors.read,
                             (double)r->errors.write, (double)r->errors.timeout, (double)r->errors.status,
                             (double)r->errors.other, r->latency_us.mean,        r->latency_us.p50,
                             r->latency_us.p75,       r->latency_us.p90,         r->latency_us.p95,
                             r->latency_us.p99,       r->latency_us.p999,        r->latency_us.max};
    for (size_t i = 0; i < MK_LEN(values); i++)
        check_value(values[i]);
    MK_ASSERT(r->requests >= 0);
    MK_ASSERT(isfinite(r->seconds) && r->seconds > 0);
    MK_ASSERT(isfinite(r->rate) && r->rate >= 0);
    MK_ASSERT(wr_result_errors(r) >= WR_UNKNOWN);
}

/* Ignores the padding after the last member. */
static bool is_nothing_known(const struct wr_result *r)
{
    struct wr_result none;
    wr_result_init(&none);
    return memcmp(r, &none, offsetof(struct wr_result, doubtful)) == 0 && r->doubtful == none.doubtful;
}

static void check_reader(const struct wr_client_type *k, mk_str in)
{
    struct wr_result r;
    const char *why = NULL;
    if (k->read(in, &r, &why)) {
        check_result(&r);
        return;
    }
    MK_ASSERT(why && *why);
    MK_ASSERT(is_nothing_known(&r));
}

static void check_json(mk_str in)
{
    mk_str object, value;
    double number;
    if (!wr_json_find_object(in, &object))
        return;
    MK_ASSERT(object.p >= in.p && object.p + object.len <= in.p + in.len && object.len <= WR_JSON_LEN);
    MK_ASSERT(object.p[0] == '{' && object.p[object.len - 1] == '}');
    if (wr_json_member(object, MK_STR("a"), &value))
        MK_ASSERT(value.len && value.p > object.p && value.p + value.len < object.p + object.len);
    if (wr_json_number(object, "a/b", &number))
        check_value(number);
}

/* The JSON parser of the tests supports no white space between values. */
static void check_other(mk_str in)
{
    mk_str object;
    if (in.len <= WR_JSON_LEN && !memchr(in.p, '\n', in.len) && json_is_object(in))
        MK_ASSERT(wr_json_find_object(in, &object) && object.len == in.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str in = mk_str_of((const char *)data, size);
    for (const struct wr_client_type *k = wr_client_type_all(); k->name; k++)
        check_reader(k, in);
    check_json(in);
    if (size)
        check_other(in);
    return 0;
}
