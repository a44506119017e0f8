/* SPDX-License-Identifier: Apache-2.0 */
#include "log_line.h"

#include <monkey/host.h>
#include <monkey/text.h>
#include <monkey/tls.h>
#include <monkey/trace.h>
#include <monkey/worker.h>
#include <time.h>

#include "attempts.h"

/* ---- The clock ---- */

static size_t write_time(char *buf, size_t cap, enum time_form form, const struct tm *t)
{
    switch (form) {
    case AS_CLF:
        return strftime(buf, cap, "%d/%b/%Y:%H:%M:%S %z", t);
    case AS_CLF_BRACKETS:
        return strftime(buf, cap, "[%d/%b/%Y:%H:%M:%S %z]", t);
    case AS_ISO:
        return strftime(buf, cap, "%Y-%m-%dT%H:%M:%S%z", t);
    case AS_UTC:
        return strftime(buf, cap, "%Y-%m-%dT%H:%M:%SZ", t);
    case AS_DAY:
        return strftime(buf, cap, "%Y-%m-%d", t);
    case AS_OF_DAY:
        return strftime(buf, cap, "%H:%M:%S", t);
    case AS_SECONDS:
    case TIME_FORMS:
        break;
    }
    return 0;
}

/* Returns the time in that format. */
static mk_str format_time(struct clock *clock, enum time_form form, int64_t time)
{
    struct clock_text *c = &clock->as[form];
    if (c->len && c->time == time)
        return mk_str_of(c->text, c->len);
    struct tm t;
    time_t seconds = (time_t)time;
    if (form == AS_UTC)
        gmtime_r(&seconds, &t);
    else
        localtime_r(&seconds, &t);
    c->len = write_time(c->text, sizeof c->text, form, &t);
    c->time = time;
    return mk_str_of(c->text, c->len);
}

static void add_time(struct line *line, const struct step *s)
{
    int64_t time = mk_request_time(line->request);
    if (s->how == AS_SECONDS)
        mk_buf_add_num(&line->out, time > 0 ? (uint64_t)time : 0);
    else
        logger_line_append(line, format_time(line->clock, (enum time_form)s->how, time));
}

/* ---- Strings ---- */

static void add_escaped(struct line *line, mk_str text, size_t end)
{
    if (line->json)
        mk_json_escape_to(&line->out, text, end);
    else
        mk_log_escape_to(&line->out, text, end);
}

/* Escapes spaces, because they separate columns. */
static void append_blanks_escaped(struct mk_buf *out, mk_str text, size_t end)
{
    while (text.p) {
        mk_log_escape_to(out, mk_str_cut(&text, ' '), end);
        if (text.p && out->len < end)
            mk_buf_add(out, MK_STR("\\x20"));
    }
}

static void add_escaped_text(struct line *line, const struct step *s, mk_str text, size_t max)
{
    size_t end = line->out.len + max;
    if (line->json || s->keeps_blanks)
        add_escaped(line, text, end);
    else
        append_blanks_escaped(&line->out, text, end);
}

static void add_limited_text(struct line *line, const struct step *s, mk_str text, size_t max)
{
    if (text.len == 0 && !line->json)
        logger_line_append(line, MK_STR("-"));
    else
        add_escaped_text(line, s, text, max);
}

static void add_text(struct line *line, const struct step *s, mk_str text)
{
    add_limited_text(line, s, text, LOGGER_TEXT_MAX);
}

/* ---- Client ---- */

static void add_address(struct line *line, const struct step *s)
{
    (void)s;
    mk_addr_format(mk_request_client_addr(line->request), &line->out);
}

static void add_port(struct line *line, const struct step *s)
{
    (void)s;
    mk_buf_add_num(&line->out, mk_request_client_addr(line->request)->port);
}

static void add_local_address(struct line *line, const struct step *s)
{
    struct mk_addr own;
    if (mk_request_local_addr(line->request, &own) == 0)
        mk_addr_format(&own, &line->out);
    else
        add_text(line, s, MK_STR(""));
}

static void add_local_port(struct line *line, const struct step *s)
{
    struct mk_addr own;
    (void)s;
    mk_buf_add_num(&line->out, mk_request_local_addr(line->request, &own) ? 0 : own.port);
}

static void add_remote_logname(struct line *line, const struct step *s)
{
    add_text(line, s, MK_STR(""));
}

static void add_user(struct line *line, const struct step *s)
{
    add_limited_text(line, s, mk_request_user(line->request), LOGGER_USER_MAX);
}

/* Adds a whole JSON member, which is omitted if no user is known. */
static void add_user_member(struct line *line, const struct step *s)
{
    mk_str user = mk_request_user(line->request);
    if (user.len == 0)
        return;
    logger_line_append(line, MK_STR(",\"user\":\""));
    add_limited_text(line, s, user, LOGGER_USER_MAX);
    logger_line_append(line, MK_STR("\""));
}

/* ---- Request ---- */

static mk_str request_version(const struct mk_request *r)
{
    if (!mk_request_method_text(r).p)
        return MK_STR("");
    switch (mk_request_version(r)) {
    case 10:
        return MK_STR("HTTP/1.0");
    case 20:
        return MK_STR("HTTP/2.0");
    default:
        return MK_STR("HTTP/1.1");
    }
}

static void add_request_line(struct line *line, const struct step *s)
{
    mk_str blank = s->keeps_blanks || line->json ? MK_STR(" ") : MK_STR("\\x20");
    if (!mk_request_method_text(line->request).p) {
        add_text(line, s, MK_STR(""));
        return;
    }
    add_escaped_text(line, s, mk_request_method_text(line->request), LOGGER_TEXT_MAX);
    logger_line_append(line, blank);
    add_escaped_text(line, s, mk_request_target(line->request), LOGGER_TEXT_MAX);
    logger_line_append(line, blank);
    logger_line_append(line, request_version(line->request));
}

static void add_method(struct line *line, const struct step *s)
{
    add_text(line, s, mk_request_method_text(line->request));
}

static void add_target(struct line *line, const struct step *s)
{
    add_text(line, s, mk_request_target(line->request));
}

static void add_path(struct line *line, const struct step *s)
{
    add_text(line, s, mk_request_path(line->request));
}

static void add_query(struct line *line, const struct step *s)
{
    mk_str query = mk_request_query(line->request);
    if (!query.p)
        return;
    logger_line_append(line, MK_STR("?"));
    add_escaped_text(line, s, query, LOGGER_TEXT_MAX);
}

static void add_protocol(struct line *line, const struct step *s)
{
    add_text(line, s, request_version(line->request));
}

static void add_scheme(struct line *line, const struct step *s)
{
    (void)s;
    logger_line_append(line, mk_request_scheme(line->request));
}

static void add_host(struct line *line, const struct step *s)
{
    add_text(line, s, mk_request_host(line->request));
}

static void add_vhost(struct line *line, const struct step *s)
{
    const struct mk_vhost *site = mk_request_vhost(line->request);
    add_text(line, s, site ? mk_vhost_name(site) : MK_STR(""));
}

static void add_route(struct line *line, const struct step *s)
{
    add_text(line, s, mk_request_route(line->request));
}

static void add_request_field(struct line *line, const struct step *s)
{
    add_text(line, s, mk_request_received_header(line->request, s->text));
}

/* ---- Result ---- */

static void add_status(struct line *line, const struct step *s)
{
    unsigned status = mk_access_record_status(line->record);
    (void)s;
    /* 499 is the usual code if the client disconnected before the response. */
    mk_buf_add_num(&line->out, status || line->json ? status : 499);
}

static void add_sent(struct line *line, const struct step *s)
{
    uint64_t sent = mk_access_record_sent(line->record);
    if (sent || line->json || s->how)
        mk_buf_add_num(&line->out, sent);
    else
        logger_line_append(line, MK_STR("-"));
}

static void add_duration(struct line *line, const struct step *s)
{
    mk_buf_add_num(&line->out, mk_access_record_duration_us(line->record) / s->how);
}

static void add_outcome(struct line *line, const struct step *s)
{
    (void)s;
    logger_line_append(line, mk_str_from_c(mk_outcome_name(mk_access_record_outcome(line->record))));
}

static void add_response_field(struct line *line, const struct step *s)
{
    add_text(line, s, mk_access_record_header(line->record, s->text));
}

static void add_reason(struct line *line, const struct step *s)
{
    add_text(line, s, mk_str_from_c(mk_access_record_reason(line->record)));
}

static void add_received(struct line *line, const struct step *s)
{
    (void)s;
    mk_buf_add_num(&line->out, mk_access_record_received(line->record));
}

/* ---- Backends ---- */

static void add_attempts(struct line *line, const struct step *s)
{
    char buf[LOGGER_TEXT_MAX];
    add_text(line, s, logger_attempts_print(line->request, (enum attempt_property)s->how, buf, sizeof buf));
}

static void add_attempt_count(struct line *line, const struct step *s)
{
    (void)s;
    mk_buf_add_num(&line->out, logger_attempts_count(line->request));
}

/* ---- TLS ---- */

static void add_tls_version(struct line *line, const struct step *s)
{
    struct mk_tls_info tls = {0};
    (void)mk_request_tls(line->request, &tls);
    add_text(line, s, tls.version);
}

static void add_tls_cipher(struct line *line, const struct step *s)
{
    struct mk_tls_info tls = {0};
    (void)mk_request_tls(line->request, &tls);
    add_text(line, s, tls.cipher);
}

static void add_tls_group(struct line *line, const struct step *s)
{
    struct mk_tls_info tls = {0};
    (void)mk_request_tls(line->request, &tls);
    add_text(line, s, tls.group);
}

/* ---- Request ID ---- */

static void add_id(struct line *line, const struct step *s)
{
    (void)s;
    logger_line_append(line, mk_request_id(line->request));
}

/* Adds a last column, with its space, if the host has request IDs. */
static void add_id_column(struct line *line, const struct step *s)
{
    if (!mk_request_logs_id(line->request))
        return;
    logger_line_append(line, MK_STR(" "));
    add_id(line, s);
}

/* Adds a whole JSON member, which is omitted if the request has no ID. */
static void add_id_member(struct line *line, const struct step *s)
{
    if (!mk_request_has_id(line->request))
        return;
    logger_line_append(line, MK_STR(",\"request_id\":\""));
    add_id(line, s);
    logger_line_append(line, MK_STR("\""));
}

static void add_trace_id(struct line *line, const struct step *s)
{
    char buf[32];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    const struct mk_trace *t = mk_request_trace(line->request);
    if (t)
        mk_hex_encode(&text, mk_str_of((const char *)t->trace_id, sizeof t->trace_id));
    add_text(line, s, mk_buf_str(&text));
}

/* ---- Process ---- */

static void add_pid(struct line *line, const struct step *s)
{
    (void)s;
    mk_buf_add_num(&line->out, (uint64_t)line->clock->pid);
}

static void add_worker(struct line *line, const struct step *s)
{
    (void)s;
    mk_buf_add_num(&line->out, mk_worker_index(mk_request_worker(line->request)));
}

enum { TEXT = LOGGER_TEXT_MAX, WORD = LOGGER_WORD_MAX, USER = LOGGER_USER_MAX };

const struct directive logger_directives[] = {
    {'%', NULL, true, 0, 1, NULL},
    {'a', NULL, false, 0, WORD, add_address},
    {'h', NULL, false, 0, WORD, add_address},
    {'A', NULL, false, 0, WORD, add_local_address},
    {'p', NULL, true, 0, WORD, add_local_port},
    {'p', "local", true, 0, WORD, add_local_port},
    {'p', "remote", true, 0, WORD, add_port},
    {'l', NULL, false, 0, 1, add_remote_logname},
    {'u', NULL, false, 0, USER, add_user},
    {'u', "member", true, 0, USER + WORD, add_user_member},
    {'t', NULL, false, AS_CLF_BRACKETS, WORD, add_time},
    {'t', "clf", false, AS_CLF, WORD, add_time},
    {'t', "iso", false, AS_ISO, WORD, add_time},
    {'t', "utc", false, AS_UTC, WORD, add_time},
    {'t', "day", false, AS_DAY, WORD, add_time},
    {'t', "time", false, AS_OF_DAY, WORD, add_time},
    {'t', "sec", true, AS_SECONDS, WORD, add_time},
    {'r', NULL, false, 0, 2 * TEXT + WORD, add_request_line},
    {'m', NULL, false, 0, TEXT, add_method},
    {'U', NULL, false, 0, TEXT, add_path},
    {'U', "raw", false, 0, TEXT, add_target},
    {'q', NULL, false, 0, TEXT + 1, add_query},
    {'H', NULL, false, 0, WORD, add_protocol},
    {'S', NULL, false, 0, WORD, add_scheme},
    {'V', NULL, false, 0, TEXT, add_host},
    {'v', NULL, false, 0, TEXT, add_vhost},
    {'R', NULL, false, 0, TEXT, add_route},
    {'i', "", false, 0, TEXT, add_request_field},
    {'o', "", false, 0, TEXT, add_response_field},
    {'s', NULL, true, 0, WORD, add_status},
    {'b', NULL, true, 0, WORD, add_sent},
    {'B', NULL, true, 1, WORD, add_sent},
    {'D', NULL, true, 1, WORD, add_duration},
    {'T', NULL, true, 1000000, WORD, add_duration},
    {'T', "s", true, 1000000, WORD, add_duration},
    {'T', "ms", true, 1000, WORD, add_duration},
    {'T', "us", true, 1, WORD, add_duration},
    {'X', NULL, false, 0, WORD, add_outcome},
    {'x', "reason", false, 0, WORD, add_reason},
    {'x', "received", true, 0, WORD, add_received},
    {'x', "tls_version", false, 0, WORD, add_tls_version},
    {'x', "tls_cipher", false, 0, WORD, add_tls_cipher},
    {'x', "tls_group", false, 0, WORD, add_tls_group},
    {'x', "upstream_addr", false, ATTEMPT_ADDRESS, TEXT, add_attempts},
    {'x', "upstream_server", false, ATTEMPT_SERVER, TEXT, add_attempts},
    {'x', "upstream_tries", true, 0, WORD, add_attempt_count},
    {'x', "upstream_status", false, ATTEMPT_STATUS, TEXT, add_attempts},
    {'x', "upstream_connect_time", false, ATTEMPT_CONNECT, TEXT, add_attempts},
    {'x', "upstream_header_time", false, ATTEMPT_HEADER, TEXT, add_attempts},
    {'x', "upstream_response_time", false, ATTEMPT_RESPONSE, TEXT, add_attempts},
    {'x', "upstream_bytes_received", false, ATTEMPT_RECEIVED, TEXT, add_attempts},
    {'x', "trace_id", false, 0, WORD, add_trace_id},
    {'L', NULL, false, 0, WORD + 1, add_id},
    {'L', "column", false, 0, WORD + 2, add_id_column},
    {'L', "member", true, 0, 2 * WORD, add_id_member},
    {'P', NULL, true, 0, WORD, add_pid},
    {'W', NULL, true, 0, WORD, add_worker},
};
const size_t logger_n_directives = MK_LEN(logger_directives);
