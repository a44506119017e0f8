/* SPDX-License-Identifier: Apache-2.0 */
/* A chunked body gives the same bytes, result and remaining input whether decoded at once or in pieces. */
#include "base/assert.h"
#include "http/chunked.h"
#include "http/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 4096, TRAILERS_MAX = 64 };

struct result {
    char body[BODY_MAX], trailers[TRAILERS_MAX];
    size_t len, trailers_len, used;
    uint64_t total;
    int answer;
};

static void add_output(struct result *result, mk_str data)
{
    bool is_body = result->answer == MK_CHUNKED_DATA;
    char *to = is_body ? result->body : result->trailers;
    size_t *len = is_body ? &result->len : &result->trailers_len;
    MK_ASSERT(*len + data.len <= (is_body ? BODY_MAX : TRAILERS_MAX));
    memcpy(to + *len, data.p, data.len);
    *len += data.len;
}

/* All trailers must be complete lines that are header fields. */
static void check_trailers(const struct result *result)
{
    mk_str section = mk_str_of(result->trailers, result->trailers_len), name, value;
    MK_ASSERT(section.len == 0 || mk_str_ends(section, MK_STR("\r\n")));
    while (mk_trailer_next(&section, &name, &value))
        MK_ASSERT(mk_is_token(name) && mk_is_header_value(value));
    MK_ASSERT(section.len == 0);
}

static void decode(mk_str in, size_t step, struct result *result)
{
    struct mk_chunked c;
    size_t arrived = 0;
    mk_chunked_init(&c, TRAILERS_MAX);
    *result = (struct result){.answer = MK_CHUNKED_MORE};
    while (result->answer >= 0 && result->answer != MK_CHUNKED_END) {
        if (result->answer == MK_CHUNKED_MORE && result->used == arrived) {
            if (arrived == in.len)
                break;
            arrived += mk_min(step, in.len - arrived);
        }
        mk_str rest = mk_str_skip(mk_str_first(in, arrived), result->used), data = MK_STR("");
        size_t before = rest.len;
        result->answer = mk_chunked_decode(&c, &rest, &data);
        result->used += before - rest.len;
        if (result->answer != MK_CHUNKED_DATA && result->answer != MK_CHUNKED_TRAILERS)
            continue;
        MK_ASSERT(data.len > 0 && data.p >= in.p && data.p + data.len == in.p + result->used);
        add_output(result, data);
    }
    MK_ASSERT(result->answer != MK_CHUNKED_MORE || result->used == in.len);
    result->total = c.total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct result whole, pieces;
    if (size > BODY_MAX)
        return 0;
    mk_str in = mk_str_of((const char *)data, size);
    decode(in, SIZE_MAX, &whole);
    int r = whole.answer;
    MK_ASSERT(r == MK_CHUNKED_MORE || r == MK_CHUNKED_END || r == -400 || r == -413 || r == -431);
    MK_ASSERT(r != MK_CHUNKED_END || whole.total == whole.len);
    MK_ASSERT(whole.len <= whole.total);
    if (r == MK_CHUNKED_END)
        check_trailers(&whole);
    for (size_t step = 1; step < 4; step++) {
        decode(in, step, &pieces);
        MK_ASSERT(pieces.answer == r && pieces.used == whole.used && pieces.total == whole.total);
        MK_ASSERT(pieces.len == whole.len && memcmp(pieces.body, whole.body, whole.len) == 0);
        MK_ASSERT(r != MK_CHUNKED_END || pieces.trailers_len == whole.trailers_len);
        MK_ASSERT(r != MK_CHUNKED_END || memcmp(pieces.trailers, whole.trailers, whole.trailers_len) == 0);
    }
    return 0;
}
