/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that all formats share. */
#include <monkey/text.h>
#include <monkey/utf8.h>
#include <time.h>

#include "listing.h"

void dirlisting_write_time(struct mk_buf *out, int64_t time, bool html)
{
    struct tm tm;
    time_t t = (time_t)time;
    if (!gmtime_r(&t, &tm))
        return;
    mk_buf_addf(out, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    if (html)
        mk_buf_addf(out, "<span> %02d:%02d</span>", tm.tm_hour, tm.tm_min);
    else
        mk_buf_addf(out, "T%02d:%02d:%02dZ", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* Rejects control characters, and invisible characters that reorder or break the text around them. */
static bool is_visible(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},   {0x180e, 0x180e},
        {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f}, {0xfeff, 0xfeff},
        {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < MK_LEN(ranges); i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return false;
    return true;
}

void dirlisting_write_name(struct mk_buf *out, mk_str name, void (*write)(struct mk_buf *out, mk_str part))
{
    uint32_t c;
    for (size_t run = 0; name.len;) {
        size_t len = mk_utf8_decode(mk_str_skip(name, run), &c);
        if (len && is_visible(c) && (run += len) < name.len)
            continue;
        write(out, mk_str_first(name, run));
        name = mk_str_skip(name, run);
        run = 0;
        for (size_t n = len ? len : 1; n && name.len; n--) {
            mk_buf_addf(out, "\\x%02X", (unsigned)(unsigned char)name.p[0]);
            name = mk_str_skip(name, 1);
        }
    }
}
