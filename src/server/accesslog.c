/* SPDX-License-Identifier: Apache-2.0 */
#include "server/accesslog.h"

#include <inttypes.h>
#include <time.h>

enum {
    TEXT_MAX = 768
}; /* of each text that a client sent: four of them, escaped, fit a line with room to spare */

static void set_clock(struct mk_access_clock *c, int64_t now)
{
    struct tm t;
    time_t seconds = (time_t)now;
    if (c->written == now && c->local[0])
        return;
    c->written = now;
    localtime_r(&seconds, &t);
    strftime(c->local, sizeof c->local, "%d/%b/%Y:%H:%M:%S %z", &t);
    strftime(c->iso, sizeof c->iso, "%Y-%m-%dT%H:%M:%S%z", &t);
    strftime(c->of_day, sizeof c->of_day, "%H:%M:%S", &t);
}

/* Quotes, backslashes and everything that is not visible ASCII become \xHH; cut when the room for it is used
 * up. */
static void add_escaped(struct mk_buf *out, mk_str s)
{
    size_t end = mk_min(out->len + TEXT_MAX, out->cap);
    for (size_t i = 0; i < s.len && out->len + 4 < end; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            mk_buf_add_char(out, (char)c);
        } else {
            char hex[4] = {'\\', 'x', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
            mk_buf_add(out, mk_str_of(hex, 4));
        }
    }
}

static void add_or_dash(struct mk_buf *out, mk_str s)
{
    if (s.len)
        add_escaped(out, s);
    else
        mk_buf_add_char(out, '-');
}

static mk_str version_of(const struct mk_request *r)
{
    return r->version == 10 ? MK_STR("HTTP/1.0") : r->version == 20 ? MK_STR("HTTP/2.0") : MK_STR("HTTP/1.1");
}

static void add_request_line(struct mk_buf *out, const struct mk_request *r)
{
    if (!r->method_text.p) {
        mk_buf_add_char(out, '-');
        return;
    }
    add_escaped(out, r->method_text);
    mk_buf_add_char(out, ' ');
    add_escaped(out, r->target_text);
    mk_buf_add_char(out, ' ');
    mk_buf_add(out, version_of(r));
}

static mk_str field(const struct mk_request *r, enum mk_field_id id)
{
    return r->fields.at ? mk_fields_get(&r->fields, id) : (mk_str){NULL, 0};
}

static void add_status(struct mk_buf *out, const struct mk_record *rec)
{
    /* 499 is what others, too, write for a client that was gone before it got an answer. */
    mk_buf_add_num(out, rec->status ? rec->status : 499);
}

static void write_combined(struct mk_buf *out, const struct mk_record *rec, const struct mk_access_clock *c)
{
    const struct mk_request *r = rec->request;
    mk_peer_print(r->peer, out);
    mk_buf_add(out, MK_STR(" - - ["));
    mk_buf_add(out, mk_str_from_c(c->local));
    mk_buf_add(out, MK_STR("] \""));
    add_request_line(out, r);
    mk_buf_add(out, MK_STR("\" "));
    add_status(out, rec);
    mk_buf_add_char(out, ' ');
    if (rec->content_sent)
        mk_buf_add_num(out, rec->content_sent);
    else
        mk_buf_add_char(out, '-');
    mk_buf_add(out, MK_STR(" \""));
    add_or_dash(out, field(r, MK_FIELD_REFERER));
    mk_buf_add(out, MK_STR("\" \""));
    add_or_dash(out, field(r, MK_FIELD_USER_AGENT));
    mk_buf_add(out, MK_STR("\"\n"));
}

/* How many bytes of well-formed UTF-8 stand at the beginning; 0 if it is none. */
static size_t utf8_len(mk_str s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t len = c < 0x80                ? 1
                 : c >= 0xc2 && c < 0xe0 ? 2
                 : c >= 0xe0 && c < 0xf0 ? 3
                 : c >= 0xf0 && c < 0xf5 ? 4
                                         : 0;
    if (len == 0 || len > s.len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if (((unsigned char)s.p[i] & 0xc0) != 0x80)
            return 0;
    unsigned char second = len > 1 ? (unsigned char)s.p[1] : 0x80;
    bool overlong = (c == 0xe0 && second < 0xa0) || (c == 0xf0 && second < 0x90);
    bool beyond = (c == 0xed && second > 0x9f) || (c == 0xf4 && second > 0x8f);
    return overlong || beyond ? 0 : len;
}

static void add_json_char(struct mk_buf *out, mk_str s, size_t len)
{
    unsigned char c = (unsigned char)s.p[0], second = len == 2 ? (unsigned char)s.p[1] : 0;
    if (c == '"' || c == '\\')
        mk_buf_add_char(out, '\\');
    if (len == 0 || c < 0x20 || c == 0x7f)
        mk_buf_addf(out, "\\u%04x", c); /* a byte that is no UTF-8 is taken for Latin-1 */
    else if (c == 0xc2 && second < 0xa0)
        mk_buf_addf(out, "\\u%04x", second); /* U+0080 to U+009F: a terminal may obey them */
    else
        mk_buf_add(out, mk_str_take(s, len));
}

static void add_json(struct mk_buf *out, const char *name, mk_str s)
{
    size_t end = mk_min(out->len + TEXT_MAX, out->cap);
    mk_buf_addf(out, ",\"%s\":\"", name);
    while (s.len && out->len + 8 < end) {
        size_t len = utf8_len(s);
        add_json_char(out, s, len);
        s = mk_str_skip(s, len ? len : 1);
    }
    mk_buf_add_char(out, '"');
}

static void write_json(struct mk_buf *out, const struct mk_record *rec, const struct mk_access_clock *c)
{
    const struct mk_request *r = rec->request;
    mk_buf_addf(out, "{\"time\":\"%s\",\"client\":\"", c->iso);
    mk_peer_print(r->peer, out);
    mk_buf_add_char(out, '"');
    add_json(out, "host", r->host);
    add_json(out, "method", r->method_text);
    add_json(out, "target", r->target_text);
    add_json(out, "protocol", r->method_text.p ? version_of(r) : MK_STR(""));
    mk_buf_addf(out, ",\"status\":%u,\"bytes\":%" PRIu64 ",\"ms\":%" PRIu64 ",\"end\":\"%s\"", rec->status,
                rec->content_sent, rec->duration_ms, mk_ending_name(rec->ending));
    add_json(out, "referer", field(r, MK_FIELD_REFERER));
    add_json(out, "agent", field(r, MK_FIELD_USER_AGENT));
    mk_buf_add(out, MK_STR("}\n"));
}

static void write_short(struct mk_buf *out, const struct mk_record *rec, const struct mk_access_clock *c)
{
    mk_buf_addf(out, "%s ", c->of_day);
    add_status(out, rec);
    mk_buf_add_char(out, ' ');
    add_or_dash(out, rec->request->method_text);
    mk_buf_add_char(out, ' ');
    add_or_dash(out, rec->request->target_text);
    mk_buf_addf(out, "  %" PRIu64 " bytes to ", rec->content_sent);
    mk_peer_print(rec->request->peer, out);
    if (rec->duration_ms >= 100)
        mk_buf_addf(out, ", %" PRIu64 " ms", rec->duration_ms);
    mk_buf_add_char(out, '\n');
}

void mk_accesslog_write(struct mk_buf *out, enum mk_access_format format, const struct mk_record *record,
                        struct mk_access_clock *clock)
{
    set_clock(clock, record->request->now);
    switch (format) {
    case MK_ACCESS_COMBINED:
        write_combined(out, record, clock);
        break;
    case MK_ACCESS_JSON:
        write_json(out, record, clock);
        break;
    case MK_ACCESS_SHORT:
        write_short(out, record, clock);
        break;
    }
}
