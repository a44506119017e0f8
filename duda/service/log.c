/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/json.h>
#include <stdio.h>
#include <string.h>

#include "service/duda_ctx.h"
#include "service/route_table.h"

enum {
    TEXT_MAX = 512, /* maximum length of all fields of a message */
    JSON_MAX = 1088,
    TEXT_ORIGIN = 96, /* part of it that is kept for the request ID and the route */
    JSON_ORIGIN = 400,
};

/* The fields of a message, in both forms. */
struct fields {
    struct mk_buf text, json;
    struct mk_json_writer w;
    char text_buf[TEXT_MAX], json_buf[JSON_MAX];
};

static void begin_fields(struct fields *f)
{
    f->text = mk_buf_fixed(f->text_buf, sizeof f->text_buf);
    f->json = mk_buf_fixed(f->json_buf, sizeof f->json_buf);
    f->w = mk_json_writer_to(&f->json);
}

static void write_message(struct duda_ctx *d, enum mk_log_level level, mk_str message, const struct fields *f)
{
    const struct mk_log_fields fields = {mk_buf_str(&f->text), mk_buf_str(&f->json)};
    if (d->request)
        mk_request_log_fields(d->request, level, message, &fields);
    else
        mk_worker_log_fields(d->worker_ctx->worker, level, message, &fields);
}

void duda_log_plain(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
{
    char message[DUDA_LOG_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    if (d->request)
        mk_request_log(d->request, level, "%s", message);
    else
        mk_worker_log(d->worker_ctx->worker, level, "%s", message);
}

/* ---- Fields ---- */

/* Removes a field that did not fit, which began at `len`. */
static void remove_failed_field(struct mk_buf *out, size_t len)
{
    if (out->failed) {
        out->len = len;
        out->failed = false;
    }
}

/* Returns whether lines of the JSON log have a member with this name themselves. */
static bool is_reserved_name(mk_str name)
{
    static const mk_str names[] = {MK_STR_INIT("time"),    MK_STR_INIT("level"),      MK_STR_INIT("pid"),
                                   MK_STR_INIT("message"), MK_STR_INIT("client"),     MK_STR_INIT("method"),
                                   MK_STR_INIT("target"),  MK_STR_INIT("request_id"), MK_STR_INIT("job"),
                                   MK_STR_INIT("route")};
    for (size_t i = 0; i < MK_LEN(names); i++)
        if (mk_str_eq(name, names[i]))
            return true;
    return false;
}

static bool is_bare_char(char c)
{
    return mk_char_is_alpha(c) || mk_char_is_digit(c) || (c && strchr("-_./:+@", c));
}

static bool is_bare_text(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_bare_char(text.p[i]))
            return false;
    return text.len > 0;
}

/* Quotes text that could end a value. The log replaces control characters, but a NUL would end the line. */
static void append_text_value(struct mk_buf *out, mk_str text)
{
    if (is_bare_text(text)) {
        mk_buf_add(out, text);
        return;
    }
    mk_buf_add_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            mk_buf_add_char(out, '\\');
        mk_buf_add_char(out, text.p[i] ? text.p[i] : '?');
    }
    mk_buf_add_char(out, '"');
}

static void append_text_field(struct mk_buf *out, mk_str name, const struct duda_value *value)
{
    mk_buf_add_char(out, ' ');
    for (size_t i = 0; i < name.len; i++)
        mk_buf_add_char(out, is_bare_char(name.p[i]) ? name.p[i] : '_');
    mk_buf_add_char(out, '=');
    if (value->kind == DUDA_VALUE_TEXT)
        append_text_value(out, value->of.text);
    else
        duda_json_write(out, value);
}

static void append_json_field(struct fields *f, mk_str name, const struct duda_value *value)
{
    char buf[80];
    struct mk_buf own = mk_buf_fixed(buf, sizeof buf);
    mk_buf_addf(&own, "%.*s%s", MK_STR_ARG(mk_str_first(name, 64)), is_reserved_name(name) ? "_" : "");
    mk_json_key_str(&f->w, mk_buf_str(&own));
    if (value->kind == DUDA_VALUE_TEXT)
        mk_json_string(&f->w, value->of.text);
    else
        duda_json_write(&f->json, value);
    f->w.comma = true;
}

static void append_field(struct fields *f, const struct duda_entry *e)
{
    mk_str name = mk_str_from_c(e->name ? e->name : "");
    size_t text_len = f->text.len, json_len = f->json.len;
    bool comma = f->w.comma;
    append_text_field(&f->text, name, &e->value);
    append_json_field(f, name, &e->value);
    if (f->json.failed)
        f->w.comma = comma;
    remove_failed_field(&f->text, text_len);
    remove_failed_field(&f->json, json_len);
}

/* Appends the ID of the job and, in JSON, the route. Packages have no route. The server itself adds the ID
 * of a request, which must exist for this purpose. */
static void append_origin(struct duda_ctx *d, struct fields *f)
{
    const struct duda_route *r = d->route_entry ? d->route_entry->route : NULL;
    size_t text_len = f->text.len, json_len = f->json.len;
    mk_str id = duda_request_id(d);
    if (!d->request) {
        mk_buf_addf(&f->text, " (job %s)", id.p);
        mk_json_string(mk_json_key(&f->w, "job"), id);
    }
    if (r && r->method) {
        char buf[256];
        struct mk_buf route = mk_buf_fixed(buf, sizeof buf);
        mk_buf_addf(&route, "%s %.*s", r->method, MK_STR_ARG(mk_str_first(d->route_entry->pattern, 200)));
        mk_json_string(mk_json_key(&f->w, "route"), mk_buf_str(&route));
    }
    remove_failed_field(&f->text, text_len);
    remove_failed_field(&f->json, json_len);
}

/* A separate function, because the stack frame of the caller would become too large. */
DUDA_COLD static void write_with_origin(struct duda_ctx *d, enum mk_log_level level, mk_str message)
{
    struct fields f;
    begin_fields(&f);
    append_origin(d, &f);
    write_message(d, level, message, &f);
}

/* Appends the function that runs, or has determined the result. */
static void append_handler(struct mk_buf *out, const struct duda_ctx *d)
{
    const struct duda_route *r = d->result_route;
    if (!r)
        r = d->route_entry ? d->route_entry->route : NULL;
    if (!r)
        return;
    mk_buf_addf(out, "%s() in %s", r->name, r->file);
    if (r->line) /* otherwise a task */
        mk_buf_addf(out, ":%d", r->line);
    mk_buf_add(out, MK_STR(": "));
}

void duda_log_handler(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
{
    char buf[DUDA_LOG_MAX - 128]; /* leaves space for the request ID */
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf / 2);
    va_list args;
    append_handler(&out, d);
    va_start(args, fmt);
    vsnprintf(buf + out.len, sizeof buf - out.len, fmt, args);
    va_end(args);
    write_with_origin(d, level, mk_str_from_c(buf));
}

void duda_log(struct duda_ctx *d, enum mk_log_level level, const char *fmt, ...)
{
    char buf[DUDA_LOG_MAX - 128]; /* leaves space for the request ID */
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof buf ? (size_t)n : sizeof buf - 1;
    write_with_origin(d, level, mk_str_of(buf, len));
}

void duda_log_field_array(struct duda_ctx *d, enum mk_log_level level, const char *message,
                          const struct duda_entry *entries, size_t n)
{
    struct fields f;
    begin_fields(&f);
    f.text.cap -= TEXT_ORIGIN; /* long fields leave space for the ID of the request */
    f.json.cap -= JSON_ORIGIN;
    for (size_t i = 0; i < n; i++)
        append_field(&f, &entries[i]);
    f.text.cap += TEXT_ORIGIN;
    f.json.cap += JSON_ORIGIN;
    append_origin(d, &f);
    write_message(d, level, mk_str_first(mk_str_from_c(message), DUDA_LOG_MAX - TEXT_MAX), &f);
}
