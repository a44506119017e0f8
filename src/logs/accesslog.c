/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/accesslog.h"

#include <inttypes.h>
#include <time.h>

#include "base/codec.h"
#include "base/json.h"

/* Maximum length of each string from a client, after escaping: four such strings and a user name fit into one
 * line. */
enum { TEXT_MAX = 768, USER_MAX = 192 };

/* strftime() would use the program's locale for the month. */
static void format_local_time(struct mk_access_clock *c, const struct tm *t)
{
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct mk_buf text = mk_buf_fixed(c->local, sizeof c->local - 1);
    char rest[32];
    size_t len = strftime(rest, sizeof rest, "/%Y:%H:%M:%S %z", t);
    mk_buf_addf(&text, "%02d/%s%.*s", t->tm_mday, months[t->tm_mon], (int)len, rest);
    c->local[text.len] = '\0';
}

static void update_clock_text(struct mk_access_clock *c, int64_t now)
{
    struct tm t;
    time_t seconds = (time_t)now;
    if (c->written == now && c->local[0])
        return;
    c->written = now;
    localtime_r(&seconds, &t);
    format_local_time(c, &t);
    strftime(c->iso, sizeof c->iso, "%Y-%m-%dT%H:%M:%S%z", &t);
    strftime(c->of_day, sizeof c->of_day, "%H:%M:%S", &t);
}

/* Escapes a string, and truncates it when its share of the line is used up. */
static void append_escaped(struct mk_buf *out, mk_str s)
{
    mk_log_escape_to(out, s, mk_min(out->len + TEXT_MAX, out->cap));
}

static void append_or_dash(struct mk_buf *out, mk_str s)
{
    if (s.len)
        append_escaped(out, s);
    else
        mk_buf_add_char(out, '-');
}

/* Writes the user as one word: log parsers split the fields before the first quote at spaces. */
static void append_user(struct mk_buf *out, mk_str user)
{
    size_t end = mk_min(out->len + USER_MAX, out->cap);
    if (user.len == 0)
        mk_buf_add_char(out, '-');
    while (user.len) {
        size_t blank = mk_str_find(user, ' ');
        mk_log_escape_to(out, mk_str_first(user, blank), end);
        if (blank != MK_STR_NONE && out->len < end)
            mk_buf_add(out, MK_STR("\\x20"));
        user = blank == MK_STR_NONE ? MK_STR_NULL : mk_str_skip(user, blank + 1);
    }
}

static mk_str protocol_version(const struct mk_request *r)
{
    return r->version == 10 ? MK_STR("HTTP/1.0") : r->version == 20 ? MK_STR("HTTP/2.0") : MK_STR("HTTP/1.1");
}

static void append_request_line(struct mk_buf *out, const struct mk_request *r)
{
    if (!r->method_text.p) {
        mk_buf_add_char(out, '-');
        return;
    }
    append_escaped(out, r->method_text);
    mk_buf_add_char(out, ' ');
    append_escaped(out, r->target_text);
    mk_buf_add_char(out, ' ');
    mk_buf_add(out, protocol_version(r));
}

static mk_str request_header(const struct mk_request *r, enum mk_header_id id)
{
    return r->fields.at ? mk_headers_get(mk_request_received_headers(r), id) : MK_STR_NULL;
}

static void append_status(struct mk_buf *out, const struct mk_access_record *rec)
{
    /* 499, as nginx logs it: the client closed the connection before the response. */
    mk_buf_add_num(out, rec->status ? rec->status : 499);
}

static void append_id(struct mk_buf *out, const char *before, const struct mk_request *r)
{
    if (!r->logs_id)
        return;
    mk_buf_add(out, mk_str_from_c(before));
    mk_buf_add(out, mk_request_id(r));
}

static void write_combined(struct mk_buf *out, const struct mk_access_record *rec,
                           const struct mk_access_clock *c)
{
    const struct mk_request *r = rec->request;
    mk_addr_format(r->peer, out);
    mk_buf_add(out, MK_STR(" - "));
    append_user(out, mk_request_user(r));
    mk_buf_add(out, MK_STR(" ["));
    mk_buf_add(out, mk_str_from_c(c->local));
    mk_buf_add(out, MK_STR("] \""));
    append_request_line(out, r);
    mk_buf_add(out, MK_STR("\" "));
    append_status(out, rec);
    mk_buf_add_char(out, ' ');
    if (rec->content_sent)
        mk_buf_add_num(out, rec->content_sent);
    else
        mk_buf_add_char(out, '-');
    mk_buf_add(out, MK_STR(" \""));
    append_or_dash(out, request_header(r, MK_HEADER_REFERER));
    mk_buf_add(out, MK_STR("\" \""));
    append_or_dash(out, request_header(r, MK_HEADER_USER_AGENT));
    mk_buf_add_char(out, '"');
    append_id(out, " ", r);
    mk_buf_add_char(out, '\n');
}

static void write_text_up_to(struct mk_json_writer *w, const char *key, mk_str s, size_t max)
{
    mk_json_begin_string(mk_json_key(w, key));
    mk_json_escape_to(w->out, s, mk_min(w->out->len + max, w->out->cap));
    mk_json_end_string(w);
}

static void write_text(struct mk_json_writer *w, const char *key, mk_str s)
{
    write_text_up_to(w, key, s, TEXT_MAX);
}

static void write_json(struct mk_buf *out, const struct mk_access_record *rec,
                       const struct mk_access_clock *c)
{
    const struct mk_request *r = rec->request;
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "time"), c->iso);
    mk_json_begin_string(mk_json_key(&w, "client"));
    mk_addr_format(r->peer, out);
    mk_json_end_string(&w);
    if (mk_request_user(r).len)
        write_text_up_to(&w, "user", mk_request_user(r), USER_MAX);
    write_text(&w, "host", r->host);
    write_text(&w, "method", r->method_text);
    write_text(&w, "target", r->target_text);
    write_text(&w, "protocol", r->method_text.p ? protocol_version(r) : MK_STR(""));
    mk_json_uint(mk_json_key(&w, "status"), rec->status);
    mk_json_uint(mk_json_key(&w, "bytes"), rec->content_sent);
    mk_json_uint(mk_json_key(&w, "ms"), rec->duration_ms);
    mk_json_cstr(mk_json_key(&w, "outcome"), mk_outcome_name(rec->outcome));
    write_text(&w, "referer", request_header(r, MK_HEADER_REFERER));
    write_text(&w, "agent", request_header(r, MK_HEADER_USER_AGENT));
    if (mk_request_has_id(r))
        mk_json_string(mk_json_key(&w, "request_id"), mk_request_id(r));
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}

static void write_short(struct mk_buf *out, const struct mk_access_record *rec,
                        const struct mk_access_clock *c)
{
    mk_buf_addf(out, "%s ", c->of_day);
    append_status(out, rec);
    mk_buf_add_char(out, ' ');
    append_or_dash(out, rec->request->method_text);
    mk_buf_add_char(out, ' ');
    append_or_dash(out, rec->request->target_text);
    mk_buf_addf(out, "  %" PRIu64 " bytes to ", rec->content_sent);
    mk_addr_format(rec->request->peer, out);
    if (rec->duration_ms >= 100)
        mk_buf_addf(out, ", %" PRIu64 " ms", rec->duration_ms);
    append_id(out, ", request ", rec->request);
    mk_buf_add_char(out, '\n');
}

void mk_accesslog_write(struct mk_buf *out, enum mk_access_format format,
                        const struct mk_access_record *record, struct mk_access_clock *clock)
{
    update_clock_text(clock, record->request->now);
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
