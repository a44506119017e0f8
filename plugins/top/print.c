/* SPDX-License-Identifier: Apache-2.0 */
#include "print.h"

#include <monkey/access_record.h>
#include <monkey/text.h>
#include <time.h>

static const char *const states[MK_RECORDER_STATES] = {[MK_RECORDER_EMPTY] = "empty",
                                                       [MK_RECORDER_OPEN] = "open",
                                                       [MK_RECORDER_ENDED] = "ended",
                                                       [MK_RECORDER_LOST] = "lost"};

const char *top_print_method(unsigned method)
{
    static const char *const names[] = {
        [MK_METHOD_UNKNOWN] = "?",       [MK_METHOD_GET] = "GET",     [MK_METHOD_HEAD] = "HEAD",
        [MK_METHOD_POST] = "POST",       [MK_METHOD_PUT] = "PUT",     [MK_METHOD_DELETE] = "DELETE",
        [MK_METHOD_OPTIONS] = "OPTIONS", [MK_METHOD_PATCH] = "PATCH", [MK_METHOD_CONNECT] = "CONNECT",
        [MK_METHOD_TRACE] = "TRACE",
    };
    return method < MK_LEN(names) && names[method] ? names[method] : "?";
}

static const char *protocol_name(unsigned version)
{
    return version >= 20 ? "HTTP/2" : version == 10 ? "HTTP/1.0" : "HTTP/1.1";
}

uint64_t top_entry_ended_ms(const struct top_entry *e)
{
    return e->record.began_ms + e->record.duration_us / 1000;
}

static void append_client(const struct top_entry *e, struct mk_buf *out)
{
    mk_addr_format(&e->record.client, out);
}

/* ---- JSON ---- */

static void write_time(struct mk_json_writer *w, const char *key, uint64_t us)
{
    if (us)
        mk_json_uint(mk_json_key(w, key), us);
}

static void write_text(struct mk_json_writer *w, const char *key, mk_str text)
{
    if (text.len)
        mk_json_string(mk_json_key(w, key), text);
}

static void write_result(const struct top_entry *e, struct mk_json_writer *w)
{
    const struct mk_recorder_record *r = &e->record;
    if (r->state != MK_RECORDER_ENDED)
        return;
    mk_json_uint(mk_json_key(w, "status"), r->status);
    mk_json_uint(mk_json_key(w, "duration_us"), r->duration_us);
    mk_json_uint(mk_json_key(w, "sent"), r->sent);
    mk_json_uint(mk_json_key(w, "received"), r->received);
    mk_json_cstr(mk_json_key(w, "outcome"), mk_outcome_name((enum mk_outcome)r->outcome));
}

void top_print_json(const struct top_entry *e, struct mk_json_writer *w)
{
    char buf[64];
    struct mk_buf client = mk_buf_fixed(buf, sizeof buf);
    const struct mk_recorder_record *r = &e->record;
    append_client(e, &client);
    mk_json_begin_object(w);
    mk_json_uint(mk_json_key(w, "time_ms"), r->began_ms);
    mk_json_cstr(mk_json_key(w, "state"), states[r->state]);
    mk_json_string(mk_json_key(w, "client"), mk_buf_str(&client));
    mk_json_cstr(mk_json_key(w, "method"), top_print_method(r->method));
    write_text(w, "host", e->text[MK_RECORDER_HOST]);
    write_text(w, "path", e->text[MK_RECORDER_PATH]);
    if (e->is_path_cut)
        mk_json_bool(mk_json_key(w, "path_cut"), true);
    mk_json_cstr(mk_json_key(w, "protocol"), protocol_name(r->http_version));
    if (r->is_tls)
        mk_json_bool(mk_json_key(w, "tls"), true);
    write_result(e, w);
    write_time(w, "handler_us", r->handler_us);
    write_time(w, "connect_us", r->connect_us);
    write_time(w, "first_byte_us", r->first_byte_us);
    if (r->attempts)
        mk_json_uint(mk_json_key(w, "attempts"), r->attempts);
    write_text(w, "upstream", e->text[MK_RECORDER_UPSTREAM]);
    write_text(w, "route", e->text[MK_RECORDER_ROUTE]);
    write_text(w, "reason", e->text[MK_RECORDER_REASON]);
    write_text(w, "request_id", e->text[MK_RECORDER_ID]);
    mk_json_uint(mk_json_key(w, "pid"), r->pid);
    mk_json_end_object(w);
}

/* ---- Lines ---- */

static void append_ms(struct mk_buf *out, const char *name, uint64_t us)
{
    mk_buf_addf(out, "%s%llu.%03u", name, (unsigned long long)(us / 1000), (unsigned)(us % 1000));
}

static void append_stages(const struct mk_recorder_record *r, struct mk_buf *out)
{
    if (r->state == MK_RECORDER_ENDED)
        append_ms(out, " ", r->duration_us);
    else
        mk_buf_add(out, MK_STR(" -"));
    mk_buf_add(out, MK_STR(" ms"));
    if (r->handler_us)
        append_ms(out, " handler=", r->handler_us);
    if (r->connect_us)
        append_ms(out, " connect=", r->connect_us);
    if (r->first_byte_us)
        append_ms(out, " first_byte=", r->first_byte_us);
}

static void append_word(struct mk_buf *out, const char *name, mk_str text)
{
    if (!text.len)
        return;
    mk_buf_addf(out, " %s=", name);
    mk_log_escape(out, text);
}

static void append_when(uint64_t ms, struct mk_buf *out)
{
    char buf[40];
    struct tm t;
    time_t s = (time_t)(ms / 1000);
    if (localtime_r(&s, &t) && strftime(buf, sizeof buf, "%Y-%m-%d %H:%M:%S", &t))
        mk_buf_addf(out, "%s.%03u", buf, (unsigned)(ms % 1000));
    else
        mk_buf_addf(out, "%llu", (unsigned long long)ms);
}

void top_print_line(const struct top_entry *e, struct mk_buf *out)
{
    const struct mk_recorder_record *r = &e->record;
    append_when(r->began_ms, out);
    mk_buf_add_char(out, ' ');
    append_client(e, out);
    if (r->state == MK_RECORDER_ENDED)
        mk_buf_addf(out, " %u", r->status);
    else
        mk_buf_addf(out, " %s", states[r->state]);
    mk_buf_addf(out, " %s ", top_print_method(r->method));
    mk_log_escape(out, e->text[MK_RECORDER_HOST]);
    mk_log_escape(out, e->text[MK_RECORDER_PATH]);
    if (e->is_path_cut)
        mk_buf_add(out, MK_STR("..."));
    append_stages(r, out);
    if (r->state == MK_RECORDER_ENDED)
        mk_buf_addf(out, " bytes=%llu", (unsigned long long)r->sent);
    if (r->attempts > 1)
        mk_buf_addf(out, " attempts=%u", r->attempts);
    append_word(out, "upstream", e->text[MK_RECORDER_UPSTREAM]);
    append_word(out, "reason", e->text[MK_RECORDER_REASON]);
    append_word(out, "request_id", e->text[MK_RECORDER_ID]);
}
