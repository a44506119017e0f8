/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/openapi_body.h"

#include "doc/openapi_security.h"
#include "status_phrase.h"

#include <stdio.h>
#include <string.h>

enum { STATUSES_MAX = 32 };

static void write_empty_object(struct mk_json_writer *w)
{
    mk_json_begin_object(w);
    mk_json_end_object(w);
}

static void write_media_type(struct mk_json_writer *w, struct dev_json_schemas *named, mk_str type,
                             const struct duda_schema *schema, bool is_list)
{
    mk_json_begin_object(mk_json_key_str(w, type));
    mk_json_key(w, "schema");
    dev_json_schema_write(w, named, schema, is_list);
    mk_json_end_object(w);
}

/* ---- Request bodies ---- */

static void write_form_types(struct mk_json_writer *w, struct dev_json_schemas *named,
                             const struct duda_route *line)
{
    if (line->form && !line->files)
        write_media_type(w, named, MK_STR("application/x-www-form-urlencoded"), line->form, false);
    mk_json_begin_object(mk_json_key(w, "multipart/form-data"));
    mk_json_key(w, "schema");
    if (line->files)
        dev_json_schema_write_multipart(w, named, line->form, line->files);
    else
        dev_json_schema_write(w, named, line->form, false);
    mk_json_end_object(w);
}

/* If the route declares no body, clients may send any content. */
void dev_openapi_write_request_body(struct mk_json_writer *w, struct dev_json_schemas *named,
                                    const struct duda_route *line, const char *method)
{
    static const char *const any[] = {"application/json", "application/x-www-form-urlencoded",
                                      "multipart/form-data", "text/plain"};
    bool is_usual = strcmp(method, "post") == 0 || strcmp(method, "put") == 0 || strcmp(method, "patch") == 0;
    bool is_form = line->form || line->files, is_declared = line->request_body || is_form;
    if (!is_usual && !is_declared)
        return;
    mk_json_begin_object(mk_json_key(w, "requestBody"));
    if (is_declared)
        mk_json_bool(mk_json_key(w, "required"), true);
    mk_json_begin_object(mk_json_key(w, "content"));
    if (line->request_body) {
        mk_json_begin_object(mk_json_key(w, "application/json"));
        mk_json_key(w, "schema");
        if (line->request_is_patch)
            dev_json_schema_write_patch(w, named, line->request_body);
        else
            dev_json_schema_write_request(w, named, line->request_body, line->request_is_list);
        mk_json_end_object(w);
    }
    if (is_form)
        write_form_types(w, named, line);
    for (size_t i = 0; !is_declared && i < MK_LEN(any); i++)
        write_empty_object(mk_json_key(w, any[i]));
    mk_json_end_object(w);
    mk_json_end_object(w);
}

/* ---- Responses ---- */

/* The sender of a response. Errors of the middleware, `.auth` and `.rate` have the error page of the server,
 * whose format depends on the configuration and on the client, so the document does not describe it. The bind
 * functions always send problem details. */
enum origin { OF_HANDLER, OF_MIDDLEWARE, OF_BIND };

struct response_writer {
    struct mk_json_writer *json;
    struct dev_json_schemas *named;
    const struct duda_route *line;
    bool has_rate, sends_problems;
    bool has_content;                /* the content of the handler's usual response is written */
    unsigned statuses[STATUSES_MAX]; /* statuses already written */
    size_t n;
};

static bool is_json_type(mk_str type)
{
    return mk_str_eq(type, MK_STR("application/json")) || mk_str_ends(type, MK_STR("+json"));
}

/* Writes a media type without a schema of the service: text, or bytes. */
static void write_plain_media_type(struct mk_json_writer *w, mk_str type)
{
    mk_json_begin_object(mk_json_key_str(w, type));
    mk_json_begin_object(mk_json_key(w, "schema"));
    if (!is_json_type(type)) {
        mk_json_cstr(mk_json_key(w, "type"), "string");
        if (!mk_str_starts(type, MK_STR("text/")))
            mk_json_cstr(mk_json_key(w, "format"), "binary");
    }
    mk_json_end_object(w);
    mk_json_end_object(w);
}

static void write_usual_content(const struct response_writer *w)
{
    const struct duda_route *line = w->line;
    mk_str rest = mk_str_from_c(line->response_types  ? line->response_types
                                : line->response_body ? "application/json"
                                                      : "");
    if (mk_str_trim(rest).len == 0)
        return;
    mk_json_begin_object(mk_json_key(w->json, "content"));
    while (rest.len) {
        mk_str type = mk_str_word(&rest);
        if (type.len && line->response_body && is_json_type(type))
            write_media_type(w->json, w->named, type, line->response_body, line->response_is_list);
        else if (type.len)
            write_plain_media_type(w->json, type);
    }
    mk_json_end_object(w->json);
}

/* Writes problem details, or the body of the handler. */
static void write_error_content(const struct response_writer *w, enum origin origin)
{
    struct mk_json_writer *json = w->json;
    mk_json_begin_object(mk_json_key(json, "content"));
    if (w->line->problem && origin == OF_HANDLER) {
        write_media_type(json, w->named, MK_STR("application/json"), w->line->problem, false);
    } else {
        mk_json_begin_object(mk_json_key(json, "application/problem+json"));
        mk_json_begin_object(mk_json_key(json, "schema"));
        mk_json_cstr(mk_json_key(json, "$ref"), "#/components/schemas/Problem");
        mk_json_end_object(json);
        mk_json_end_object(json);
    }
    mk_json_end_object(json);
}

static void write_integer_header(struct mk_json_writer *w, const char *name, const char *description)
{
    mk_json_begin_object(mk_json_key(w, name));
    mk_json_cstr(mk_json_key(w, "description"), description);
    mk_json_begin_object(mk_json_key(w, "schema"));
    mk_json_cstr(mk_json_key(w, "type"), "integer");
    mk_json_end_object(w);
    mk_json_end_object(w);
}

/* Writes the headers of a route with `.rate`. */
static void write_rate_headers(struct mk_json_writer *w, bool is_rejected)
{
    mk_json_begin_object(mk_json_key(w, "headers"));
    write_integer_header(w, "RateLimit-Limit", "Number of requests that a time window allows.");
    write_integer_header(w, "RateLimit-Remaining", "Number of requests left in the time window.");
    write_integer_header(w, "RateLimit-Reset", "Seconds until the time window ends.");
    if (is_rejected)
        write_integer_header(w, "Retry-After", "Seconds until the client may try again.");
    mk_json_end_object(w);
}

/* Returns whether responses with the status may have content (RFC 9110). */
static bool status_allows_content(unsigned status)
{
    return status >= 200 && status != 204 && status != 205 && status != 304;
}

static void write_response(struct response_writer *w, unsigned status, enum origin origin)
{
    char key[12];
    for (size_t i = 0; i < w->n; i++)
        if (w->statuses[i] == status)
            return;
    if (w->n == STATUSES_MAX || status < 100 || status > 599)
        return;
    snprintf(key, sizeof key, "%u", status);
    mk_json_begin_object(mk_json_key(w->json, key));
    mk_json_cstr(mk_json_key(w->json, "description"), dev_status_phrase(status));
    if (w->has_rate && (status < 400 || status == 429))
        write_rate_headers(w->json, status == 429);
    if (!w->has_content && status < 400 && status_allows_content(status)) {
        write_usual_content(w);
        w->has_content = true;
    } else if (status >= 400 && (origin != OF_MIDDLEWARE || w->sends_problems))
        write_error_content(w, origin);
    mk_json_end_object(w->json);
    w->statuses[w->n++] = status;
}

static void write_declared_responses(struct response_writer *w)
{
    const struct duda_route *line = w->line;
    bool has_usual = line->response_body || line->response_types;
    mk_str rest = mk_str_from_c(line->responses ? line->responses : has_usual ? "200" : "");
    uint64_t status;
    while (rest.len) {
        mk_str word = mk_str_word(&rest);
        if (mk_num_parse(word, &status))
            write_response(w, (unsigned)status, OF_HANDLER);
    }
}

static void write_implied_list(struct response_writer *w, const unsigned *statuses, size_t n,
                               enum origin origin)
{
    for (size_t i = 0; i < n; i++)
        write_response(w, statuses[i], origin);
}

static bool needs_credentials(const struct dev_route *r)
{
    bool is_documented = r->security && dev_openapi_has_security(r->security);
    return r->has_authentication || (is_documented && !r->security_has_status);
}

/* Writes the error statuses that middleware, `.auth`, `.rate` and the bind functions send. */
static void write_implied_responses(struct response_writer *w, const struct dev_route *r)
{
    static const unsigned of_query[] = {400}, of_json[] = {400, 413, 415, 422},
                          of_form[] = {400, 413, 415, 422};
    if (needs_credentials(r))
        write_response(w, 401, OF_MIDDLEWARE);
    if (r->has_authorization)
        write_response(w, 403, OF_MIDDLEWARE);
    if (r->has_rate)
        write_response(w, 429, OF_MIDDLEWARE);
    write_implied_list(w, r->guards, r->n_guards, OF_MIDDLEWARE);
    if (w->line->query)
        write_implied_list(w, of_query, MK_LEN(of_query), OF_BIND);
    if (w->line->request_body)
        write_implied_list(w, of_json, MK_LEN(of_json), OF_BIND);
    if (w->line->form || w->line->files)
        write_implied_list(w, of_form, MK_LEN(of_form), OF_BIND);
}

void dev_openapi_write_responses(struct mk_json_writer *json, struct dev_json_schemas *named,
                                 const struct dev_route *r)
{
    struct response_writer w = {.json = json,
                                .named = named,
                                .line = r->line,
                                .has_rate = r->has_rate,
                                .sends_problems = r->sends_problems};
    mk_json_begin_object(mk_json_key(json, "responses"));
    write_declared_responses(&w);
    bool is_declared = w.n > 0;
    write_implied_responses(&w, r);
    if (!is_declared) {
        mk_json_begin_object(mk_json_key(json, "default"));
        mk_json_cstr(mk_json_key(json, "description"), "The response of the handler.");
        if (w.has_rate)
            write_rate_headers(json, false);
        mk_json_end_object(json);
    }
    mk_json_end_object(json);
}

/* ---- Problem details ---- */

static void begin_property(struct mk_json_writer *w, const char *name, const char *type)
{
    mk_json_begin_object(mk_json_key(w, name));
    mk_json_cstr(mk_json_key(w, "type"), type);
}

static void write_property(struct mk_json_writer *w, const char *name, const char *type)
{
    begin_property(w, name, type);
    mk_json_end_object(w);
}

static void write_problem_errors(struct mk_json_writer *w)
{
    begin_property(w, "errors", "array");
    begin_property(w, "items", "object");
    mk_json_begin_object(mk_json_key(w, "properties"));
    write_property(w, "detail", "string");
    write_property(w, "pointer", "string");
    write_property(w, "code", "string");
    write_property(w, "minimum", "number");
    write_property(w, "maximum", "number");
    write_property(w, "expected", "string");
    write_property(w, "line", "integer");
    write_property(w, "column", "integer");
    mk_json_end_object(w);
    mk_json_end_object(w);
    mk_json_end_object(w);
}

void dev_openapi_write_problem_schema(struct mk_json_writer *w)
{
    begin_property(w, "Problem", "object");
    mk_json_cstr(mk_json_key(w, "description"), "RFC 9457");
    mk_json_begin_object(mk_json_key(w, "properties"));
    write_property(w, "title", "string");
    write_property(w, "status", "integer");
    write_property(w, "detail", "string");
    write_problem_errors(w);
    mk_json_end_object(w);
    mk_json_end_object(w);
}
