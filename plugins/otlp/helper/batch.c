/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <inttypes.h>
#include <monkey/json.h>
#include <monkey/version.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_ERROR = 2 };

static void write_hex(struct mk_json_writer *w, const char *key, const unsigned char *id, size_t n)
{
    char text[33];
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    mk_json_string(mk_json_key(w, key), mk_str_of(text, 2 * n));
}

/* 64-bit numbers are strings in the JSON encoding of Protocol Buffers. */
static void write_time(struct mk_json_writer *w, const char *key, uint64_t ns)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, ns);
    mk_json_cstr(mk_json_key(w, key), text);
}

static void write_text_attribute(struct mk_json_writer *w, mk_str name, mk_str value)
{
    mk_json_begin_object(w);
    mk_json_string(mk_json_key(w, "key"), name);
    mk_json_begin_object(mk_json_key(w, "value"));
    mk_json_string(mk_json_key(w, "stringValue"), value);
    mk_json_end_object(w);
    mk_json_end_object(w);
}

static void write_int_attribute(struct mk_json_writer *w, mk_str name, mk_str value)
{
    char text[24];
    int64_t n = 0;
    memcpy(&n, value.p, value.len < sizeof n ? value.len : sizeof n);
    snprintf(text, sizeof text, "%" PRId64, n);
    mk_json_begin_object(w);
    mk_json_string(mk_json_key(w, "key"), name);
    mk_json_begin_object(mk_json_key(w, "value"));
    mk_json_cstr(mk_json_key(w, "intValue"), text);
    mk_json_end_object(w);
    mk_json_end_object(w);
}

/* Reads the item at *at, and advances *at. Returns 0 at the end. */
static unsigned next_item(const struct otlp_record *r, size_t *at, mk_str *name, mk_str *value)
{
    struct otlp_item_head head;
    size_t len = r->len < sizeof r->data ? r->len : sizeof r->data;
    if (*at + sizeof head > len)
        return 0;
    memcpy(&head, r->data + *at, sizeof head);
    size_t from = *at + sizeof head;
    if (from + head.name_len + head.value_len > len)
        return 0;
    *name = mk_str_of((const char *)r->data + from, head.name_len);
    *value = mk_str_of((const char *)r->data + from + head.name_len, head.value_len);
    *at = from + head.name_len + head.value_len;
    return head.kind;
}

/* The first item of this kind; absent: there is none. */
static mk_str find_item(const struct otlp_record *r, enum otlp_item_kind kind)
{
    mk_str name, value;
    size_t at = 0;
    for (unsigned k; (k = next_item(r, &at, &name, &value));)
        if (k == kind)
            return value;
    return MK_STR_NULL;
}

static void write_attributes(struct mk_json_writer *w, const struct otlp_record *r)
{
    mk_str name, value;
    size_t at = 0;
    mk_json_begin_array(mk_json_key(w, "attributes"));
    for (unsigned kind; (kind = next_item(r, &at, &name, &value));)
        if (kind == OTLP_ITEM_TEXT)
            write_text_attribute(w, name, value);
        else if (kind == OTLP_ITEM_INT)
            write_int_attribute(w, name, value);
    mk_json_end_array(w);
}

static void write_status(struct mk_json_writer *w, const struct otlp_record *r)
{
    mk_str error = find_item(r, OTLP_ITEM_ERROR);
    mk_json_begin_object(mk_json_key(w, "status"));
    if (r->failed)
        mk_json_uint(mk_json_key(w, "code"), STATUS_ERROR);
    if (r->failed && error.len)
        mk_json_string(mk_json_key(w, "message"), error);
    mk_json_end_object(w);
}

static void write_span(struct mk_json_writer *w, const struct otlp_record *r)
{
    mk_str state = find_item(r, OTLP_ITEM_STATE);
    mk_json_begin_object(w);
    write_hex(w, "traceId", r->trace_id, sizeof r->trace_id);
    write_hex(w, "spanId", r->span_id, sizeof r->span_id);
    if (r->has_parent)
        write_hex(w, "parentSpanId", r->parent_id, sizeof r->parent_id);
    if (state.len)
        mk_json_string(mk_json_key(w, "traceState"), state);
    mk_json_string(mk_json_key(w, "name"), find_item(r, OTLP_ITEM_NAME));
    mk_json_uint(mk_json_key(w, "kind"), r->kind);
    write_time(w, "startTimeUnixNano", r->began_ns);
    write_time(w, "endTimeUnixNano", r->ended_ns);
    write_attributes(w, r);
    write_status(w, r);
    mk_json_end_object(w);
}

static void write_resource(struct mk_json_writer *w, mk_str service)
{
    mk_json_begin_object(mk_json_key(w, "resource"));
    mk_json_begin_array(mk_json_key(w, "attributes"));
    write_text_attribute(w, MK_STR("service.name"), service);
    mk_json_end_array(w);
    mk_json_end_object(w);
}

static void write_scope(struct mk_json_writer *w)
{
    mk_json_begin_object(mk_json_key(w, "scope"));
    mk_json_cstr(mk_json_key(w, "name"), "monkey");
    mk_json_cstr(mk_json_key(w, "version"), MONKEY_VERSION);
    mk_json_end_object(w);
}

void otlp_batch_write(struct mk_buf *out, const struct otlp_queue *q, size_t n, mk_str service)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_begin_array(mk_json_key(&w, "resourceSpans"));
    mk_json_begin_object(&w);
    write_resource(&w, service);
    mk_json_begin_array(mk_json_key(&w, "scopeSpans"));
    mk_json_begin_object(&w);
    write_scope(&w);
    mk_json_begin_array(mk_json_key(&w, "spans"));
    for (size_t i = 0; i < n; i++)
        write_span(&w, otlp_queue_at(q, i));
    mk_json_end_array(&w);
    mk_json_end_object(&w);
    mk_json_end_array(&w);
    mk_json_end_object(&w);
    mk_json_end_array(&w);
    mk_json_end_object(&w);
}
