/* SPDX-License-Identifier: Apache-2.0 */
/* The access-log entry of a request with arbitrary bytes is one line; nothing in it ends the line, closes a
 * quote or controls a terminal, and JSON is valid. The first bytes are numbers; the others are split into the
 * strings. */
#include "base/assert.h"
#include "logs/accesslog.h"
#include "unit/headers.h"
#include "unit/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NUMBERS = 6 };

static mk_str line_of(enum mk_access_format format, const struct mk_access_record *record)
{
    static char buffer[MK_ACCESS_LINE];
    static struct mk_access_clock clock;
    struct mk_buf out = mk_buf_fixed(buffer, sizeof buffer);
    mk_accesslog_write(&out, format, record, &clock);
    MK_ASSERT(!out.failed && out.len > 1);
    return mk_buf_str(&out);
}

static void check_bytes(mk_str line, bool is_utf8)
{
    for (size_t i = 0; i + 1 < line.len; i++) {
        unsigned char c = (unsigned char)line.p[i];
        bool is_c1 = c == 0xc2 && (unsigned char)line.p[i + 1] < 0xa0;
        MK_ASSERT(c >= 0x20 && c != 0x7f && (c < 0x80 || (is_utf8 && !is_c1)));
    }
    MK_ASSERT(line.p[line.len - 1] == '\n');
}

static size_t count(mk_str text, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == c;
    return n;
}

static void check(const struct mk_access_record *record)
{
    mk_str combined = line_of(MK_ACCESS_COMBINED, record);
    check_bytes(combined, false);
    MK_ASSERT(count(combined, '"') == 6 && mk_str_ends(combined, MK_STR("\"\n")));
    check_bytes(line_of(MK_ACCESS_SHORT, record), false);
    mk_str json = line_of(MK_ACCESS_JSON, record);
    check_bytes(json, true);
    MK_ASSERT(json_is_object(mk_str_first(json, json.len - 1)));
}

/* Strings are separated by form feeds; an empty one is absent. */
static mk_str next_text(mk_str *rest)
{
    mk_str text = mk_str_cut(rest, '\f');
    return text.len ? text : MK_STR_NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_header_field fields[2];
    struct mk_arena arena;
    if (size < NUMBERS)
        return 0;
    const struct mk_addr peer = {.ip = {data[0], data[1], [10] = data[2], [11] = data[2]},
                                 .is_unix = data[3] & 1};
    mk_str rest = mk_str_of((const char *)data + NUMBERS, size - NUMBERS);
    struct mk_request request = {.peer = &peer, .version = data[3] % 3 ? 11 : 10, .now = data[4] * 1000003};
    request.method_text = mk_str_first(next_text(&rest), 32);
    request.target_text = next_text(&rest);
    request.host = mk_str_first(next_text(&rest), 255);
    mk_headers_init(&request.fields, fields);
    MK_ASSERT(headers_add(&request.fields, 2, MK_STR("Referer"), next_text(&rest)));
    MK_ASSERT(headers_add(&request.fields, 2, MK_STR("User-Agent"), rest));
    const struct mk_access_record record = {.request = &request,
                                            .status = data[5] < 2 ? 0 : 200u + data[5],
                                            .outcome = (enum mk_outcome)(data[4] % (MK_OUTCOME_SHUTDOWN + 1)),
                                            .content_sent = (uint64_t)data[2] << data[3] % 56,
                                            .duration_ms = data[4]};
    mk_arena_init(&arena, NULL);
    request.arena = &arena;
    if (data[4] & 1)
        MK_ASSERT(mk_request_set_user(&request, request.host) == 0);
    check(&record);
    mk_arena_fini(&arena);
    return 0;
}
