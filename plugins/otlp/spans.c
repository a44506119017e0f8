/* SPDX-License-Identifier: Apache-2.0 */
#include "spans.h"

#include <errno.h>
#include <monkey/attempt.h>
#include <monkey/clock.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

enum {
    BATCH = 4096 / OTLP_RECORD_SIZE, /* PIPE_BUF: a write of this size is complete or fails */
    SHORT_MAX = 200,                 /* bytes of a value that must leave space for others */
    VALUE_MIN = 8,                   /* a shorter rest of a value is omitted */
};

struct span_writer {
    int fd;
    const struct mk_access_record *access;
    const struct mk_trace *trace;
    uint64_t now_us, now_ns; /* of the monotonic clock, and since the Unix epoch */
    unsigned n, n_lost;
    struct otlp_record batch[BATCH];
};

/* ---- Records ---- */

static void flush_batch(struct span_writer *w)
{
    size_t size = w->n * sizeof w->batch[0];
    ssize_t written;
    do
        written = size ? write(w->fd, w->batch, size) : 0;
    while (written < 0 && errno == EINTR);
    if (written != (ssize_t)size)
        w->n_lost += w->n;
    w->n = 0;
}

static uint64_t unix_ns(const struct span_writer *w, uint64_t us)
{
    return w->now_ns - (w->now_us > us ? (w->now_us - us) * 1000 : 0);
}

static struct otlp_record *add_record(struct span_writer *w, enum mk_span_kind kind, const unsigned char *id,
                                      const unsigned char *parent_id)
{
    if (w->n == BATCH)
        flush_batch(w);
    struct otlp_record *r = &w->batch[w->n++];
    memset(r, 0, offsetof(struct otlp_record, data));
    memcpy(r->trace_id, w->trace->trace_id, sizeof r->trace_id);
    memcpy(r->span_id, id, sizeof r->span_id);
    if (parent_id)
        memcpy(r->parent_id, parent_id, sizeof r->parent_id);
    r->has_parent = parent_id != NULL;
    r->kind = (uint8_t)kind;
    return r;
}

static void add_item(struct otlp_record *r, enum otlp_item_kind kind, mk_str name, mk_str value)
{
    struct otlp_item_head head = {.kind = (uint8_t)kind};
    size_t left = sizeof r->data - r->len, used = sizeof head + name.len;
    if (name.len > UINT8_MAX || used + (value.len < VALUE_MIN ? value.len : VALUE_MIN) > left)
        return;
    value = mk_str_first(value, left - used);
    head.name_len = (uint8_t)name.len;
    head.value_len = (uint16_t)value.len;
    memcpy(r->data + r->len, &head, sizeof head);
    memcpy(r->data + r->len + sizeof head, name.p, name.len);
    if (value.len)
        memcpy(r->data + r->len + used, value.p, value.len);
    r->len = (uint16_t)(r->len + used + value.len);
}

static void add_text(struct otlp_record *r, const char *name, mk_str value)
{
    if (value.len)
        add_item(r, OTLP_ITEM_TEXT, mk_str_from_c(name), value);
}

static void add_int(struct otlp_record *r, const char *name, int64_t value)
{
    add_item(r, OTLP_ITEM_INT, mk_str_from_c(name), mk_str_of((const char *)&value, sizeof value));
}

static void add_error(struct otlp_record *r, const char *type)
{
    r->failed = true;
    add_text(r, "error.type", mk_str_from_c(type));
}

static void add_status_error(struct otlp_record *r, unsigned status)
{
    char text[4] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
                    (char)('0' + status % 10)};
    add_error(r, text);
}

/* ---- The span of the request ---- */

/* The route of a handler of Duda, or the pattern of the matched route unless it matches every path. */
static mk_str find_route(const struct span_writer *w, const struct mk_request *request)
{
    for (const struct mk_span *s = w->trace->spans; s; s = s->next)
        for (const struct mk_span_attribute *a = s->attributes; a; a = a->next)
            if (mk_str_eq(a->name, MK_STR("http.route")))
                return a->text;
    mk_str route = mk_request_route(request);
    return mk_str_eq(route, MK_STR("/*")) ? MK_STR_NULL : route;
}

static void add_method(struct otlp_record *r, const struct mk_request *request)
{
    mk_str method = mk_request_method_text(request);
    bool is_known = mk_request_method(request) != MK_METHOD_UNKNOWN;
    add_text(r, "http.request.method", is_known ? method : MK_STR("_OTHER"));
    if (!is_known)
        add_text(r, "http.request.method_original", mk_str_first(method, SHORT_MAX));
}

/* "GET /items/:id"; an unknown method is HTTP, because names must not be unbounded. */
static void add_server_name(struct otlp_record *r, const struct mk_request *request, mk_str route)
{
    char buf[SHORT_MAX];
    struct mk_buf name = mk_buf_fixed(buf, sizeof buf);
    bool is_known = mk_request_method(request) != MK_METHOD_UNKNOWN;
    mk_buf_add(&name, is_known ? mk_request_method_text(request) : MK_STR("HTTP"));
    if (route.len)
        mk_buf_add_char(&name, ' ');
    mk_buf_add(&name, mk_str_first(route, sizeof buf - name.len));
    add_item(r, OTLP_ITEM_NAME, MK_STR(""), mk_buf_str(&name));
}

static void add_client(struct otlp_record *r, const struct mk_request *request)
{
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    const struct mk_addr *client = mk_request_client_addr(request);
    if (client->is_unix)
        return;
    mk_addr_format(client, &out);
    add_text(r, "client.address", mk_buf_str(&out));
}

static void add_local_port(struct otlp_record *r, const struct mk_request *request)
{
    struct mk_addr local;
    if (!mk_request_local_addr(request, &local) && !local.is_unix)
        add_int(r, "server.port", local.port);
}

static void add_outcome(const struct span_writer *w, struct otlp_record *r)
{
    unsigned status = mk_access_record_status(w->access);
    enum mk_outcome outcome = mk_access_record_outcome(w->access);
    if (status)
        add_int(r, "http.response.status_code", status);
    if (status >= 500)
        add_status_error(r, status);
    else if (outcome != MK_OUTCOME_OK && outcome != MK_OUTCOME_REJECTED)
        add_error(r, mk_outcome_name(outcome));
}

/* The first members of `tracestate` that fit: a part of a member would be another value (W3C Trace Context, 3.3.1.5). */
static mk_str whole_members(mk_str state)
{
    if (state.len <= SHORT_MAX)
        return state;
    size_t comma = mk_str_find_last(mk_str_first(state, SHORT_MAX + 1), ',');
    return mk_str_first(state, comma == MK_STR_NONE ? 0 : comma);
}

static void write_server_span(struct span_writer *w)
{
    const struct mk_request *request = mk_access_record_request(w->access);
    const struct mk_trace *t = w->trace;
    struct otlp_record *r = add_record(w, MK_SPAN_SERVER, t->span_id, t->has_parent ? t->parent_id : NULL);
    unsigned version = mk_request_version(request);
    mk_str route = find_route(w, request);
    r->ended_ns = w->now_ns;
    r->began_ns = w->now_ns - mk_access_record_duration_us(w->access) * 1000;
    add_server_name(r, request, route);
    add_method(r, request);
    add_outcome(w, r);
    add_text(r, "network.protocol.version",
             version >= 20   ? MK_STR("2")
             : version == 11 ? MK_STR("1.1")
                             : MK_STR("1.0"));
    add_text(r, "url.scheme", mk_request_scheme(request));
    add_client(r, request);
    add_local_port(r, request);
    if (mk_request_has_id(request))
        add_text(r, "monkey.request_id", mk_request_id(request));
    add_text(r, "server.address", mk_str_first(mk_request_host(request), SHORT_MAX));
    add_text(r, "http.route", mk_str_first(route, SHORT_MAX));
    add_item(r, OTLP_ITEM_STATE, MK_STR(""), whole_members(t->state));
    /* The target may be a URL with a password. Without a valid path, there is no attribute. */
    add_text(r, "url.path", mk_request_path_at(request, 0));
    add_text(r, "user_agent.original", mk_request_header(request, MK_STR("User-Agent")));
}

/* ---- Spans of attempts ---- */

static const char *errno_name(int error)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{ECONNREFUSED, "ECONNREFUSED"}, {ECONNRESET, "ECONNRESET"}, {ETIMEDOUT, "timeout"},
                 {EHOSTUNREACH, "EHOSTUNREACH"}, {EPIPE, "EPIPE"},           {EPROTO, "EPROTO"},
                 {ECANCELED, "cancelled"},       {ENOENT, "ENOENT"},         {EACCES, "EACCES"}};
    for (size_t i = 0; i < MK_LEN(names); i++)
        if (names[i].number == -error)
            return names[i].name;
    return "_OTHER";
}

static void add_peer(struct otlp_record *r, const struct mk_addr *address)
{
    char buf[64];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    if (address->is_unix)
        return;
    mk_addr_format(address, &out);
    add_text(r, "network.peer.address", mk_buf_str(&out));
    add_int(r, "network.peer.port", address->port);
}

static void write_attempt_span(struct span_writer *w, const struct mk_attempt *a, unsigned index)
{
    const struct mk_request *request = mk_access_record_request(w->access);
    struct otlp_record *r = add_record(w, MK_SPAN_CLIENT, a->span_id, w->trace->span_id);
    mk_str host = a->server;
    uint64_t port;
    size_t colon = mk_str_find_last(host, ':');
    r->began_ns = unix_ns(w, a->began_us);
    r->ended_ns = unix_ns(w, a->ended_us ? a->ended_us : w->now_us);
    add_item(r, OTLP_ITEM_NAME, MK_STR(""),
             mk_request_method(request) != MK_METHOD_UNKNOWN ? mk_request_method_text(request)
                                                             : MK_STR("HTTP"));
    add_method(r, request);
    if (a->status)
        add_int(r, "http.response.status_code", a->status);
    if (a->error)
        add_error(r, errno_name(a->error));
    else if (a->status >= 400)
        add_status_error(r, a->status);
    if (index)
        add_int(r, "http.request.resend_count", index);
    if (colon != MK_STR_NONE && mk_num_parse(mk_str_skip(host, colon + 1), &port)) {
        host = mk_str_first(host, colon);
        add_int(r, "server.port", (int64_t)port);
    }
    add_text(r, "server.address", mk_str_first(host, SHORT_MAX));
    add_peer(r, &a->address);
}

/* ---- Other spans ---- */

static void write_other_span(struct span_writer *w, const struct mk_span *s)
{
    struct otlp_record *r = add_record(w, s->kind, s->span_id, s->parent_id);
    r->began_ns = unix_ns(w, s->began_us);
    r->ended_ns = unix_ns(w, s->ended_us ? s->ended_us : w->now_us);
    add_item(r, OTLP_ITEM_NAME, MK_STR(""), mk_str_first(s->name, SHORT_MAX));
    r->failed = s->error.p != NULL;
    if (s->error.p)
        add_item(r, OTLP_ITEM_ERROR, MK_STR(""), mk_str_first(s->error, SHORT_MAX));
    for (const struct mk_span_attribute *a = s->attributes; a; a = a->next)
        if (a->text.p)
            add_item(r, OTLP_ITEM_TEXT, a->name, a->text);
        else
            add_item(r, OTLP_ITEM_INT, a->name, mk_str_of((const char *)&a->number, sizeof a->number));
}

unsigned otlp_spans_write(int fd, const struct mk_access_record *access, const struct mk_trace *trace)
{
    struct timespec now;
    struct span_writer w; /* the batch needs no initial values */
    clock_gettime(CLOCK_REALTIME, &now);
    w.fd = fd;
    w.access = access;
    w.trace = trace;
    w.now_us = mk_clock_us();
    w.now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    w.n = 0;
    w.n_lost = trace->n_spans_lost;
    write_server_span(&w);
    unsigned index = 0;
    for (const struct mk_attempt *a = mk_request_attempts(mk_access_record_request(access)); a; a = a->next)
        write_attempt_span(&w, a, index++);
    for (const struct mk_span *s = trace->spans; s; s = s->next)
        write_other_span(&w, s);
    flush_batch(&w);
    return w.n_lost;
}
