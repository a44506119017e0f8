/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed date is written, and parses to the same date again. The input is text; its first bytes also
 * serve as a time to write and as the current time. */
#include "base/assert.h"
#include "http/date.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes `time` and returns the parsed result. */
static int64_t write_and_read(int64_t time)
{
    char text[MK_DATE_LEN];
    int64_t again;
    mk_date_write(text, time);
    MK_ASSERT(mk_date_parse(mk_str_of(text, sizeof text), 0, &again));
    return again;
}

static void check_parse(mk_str text, int64_t now)
{
    int64_t time;
    if (!mk_date_parse(text, now, &time))
        return;
    MK_ASSERT(text.len >= 24 && text.len <= 33);
    /* Two-digit years far from the current year and a leap second at the end of year 9999 are excluded. */
    if (time >= -62167219200 && time <= 253402300799)
        MK_ASSERT(write_and_read(time) == time);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t number = 1750000000;
    mk_str text = mk_str_of((const char *)data, size);
    check_parse(text, number);
    if (size >= sizeof number) {
        memcpy(&number, data, sizeof number);
        int64_t clamped = write_and_read(number);
        MK_ASSERT(write_and_read(clamped) == clamped);
        check_parse(mk_str_skip(text, sizeof number), number);
    }
    return 0;
}
