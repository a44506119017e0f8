/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a test: with the cookie jar, forms, uploads and redirects. */
#include "test_type.h"

#include <errno.h>
#include <monkey/text.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { REDIRECTS_MAX = 10, CSRF_HEX = 64 };

/* ---- Sending ---- */

/* Parses "Name: value\r\n...". Returns false for a malformed line or too many headers. */
static bool parse_headers(mk_str rest, struct mk_header *fields, size_t *n)
{
    while (rest.len) {
        mk_str value = mk_str_cut(&rest, '\n');
        if (mk_str_ends(value, MK_STR("\r")))
            value = mk_str_first(value, value.len - 1);
        mk_str name = mk_str_first(value, mk_str_find(value, ':'));
        if (*n == TESTER_FIELDS_MAX || name.len == value.len)
            return false;
        fields[(*n)++] = (struct mk_header){name, mk_str_trim(mk_str_skip(value, name.len + 1))};
    }
    return true;
}

mk_str tester_find_header(mk_str headers, mk_str name)
{
    const struct mk_test_client_response response = {.headers = headers};
    return mk_test_client_header(&response, name);
}

/* Returns the text for a negative result of the test client. */
static const char *get_request_error(int e)
{
    switch (e) {
    case -EINVAL:
        return "the request is invalid";
    case -ETIMEDOUT:
        return "no response within 30 seconds";
    case -ECONNRESET:
        return "the server closed the connection before its response was complete";
    case -EBADMSG:
        return "the response is malformed";
    default:
        return strerror(-e);
    }
}

static const char *method_of(const struct duda_test_request *request)
{
    return request->method ? request->method : request->body.p ? "POST" : "GET";
}

/* Copies the response, which must outlive the next request. The strings of the request are for
 * duda_test_follow(). */
static void store_response(struct duda_test *t, const struct duda_test_request *request,
                           const struct mk_test_client_response *response, struct duda_test_response *reply)
{
    *reply = (struct duda_test_response){
        .status = response->status,
        .headers = tester_keep(t, response->headers.p ? response->headers : MK_STR("")),
        .body = tester_keep(t, response->body.p ? response->body : MK_STR("")),
        .method = tester_keep(t, mk_str_from_c(method_of(request))),
        .target = tester_keep(t, mk_str_from_c(request->target)),
        .request_headers = tester_keep(t, request->headers ? mk_str_from_c(request->headers) : MK_STR_NULL),
        .request_body = tester_keep(t, request->body)};
    tester_store_cookies(t, reply->headers, request->target);
}

static int send_request(struct duda_test *t, const struct duda_test_request *request,
                        struct duda_test_response *reply)
{
    struct mk_header fields[TESTER_FIELDS_MAX];
    struct mk_test_client_response response;
    struct mk_buf headers = mk_buf_growing(1 << 20);
    size_t n = 0;
    tester_write_headers(t, request, &headers);
    int e = parse_headers(mk_buf_str(&headers), fields, &n) ? 0 : -EINVAL;
    struct mk_test_client *client = e ? NULL : mk_test_client_open(tester_server());
    tester_reason_begin(method_of(request), request->target);
    if (!e)
        e = client ? mk_test_client_request(client, method_of(request), request->target, fields, n,
                                            request->body, &response)
                   : -ESHUTDOWN;
    if (!e)
        store_response(t, request, &response, reply);
    tester_reason_end(t, reply);
    mk_test_client_close(client);
    mk_buf_free(&headers);
    return e;
}

struct duda_test_response duda_test_send(struct duda_test *t, const struct duda_test_request *request)
{
    struct duda_test_response reply = {.headers = MK_STR(""), .body = MK_STR("")};
    int e = send_request(t, request, &reply);
    if (e)
        tester_fail_request(t, method_of(request), request->target, get_request_error(e));
    return reply;
}

struct duda_test_response duda_test_get(struct duda_test *t, const char *target)
{
    return duda_test_send(t, &(struct duda_test_request){.target = target});
}

struct duda_test_response duda_test_post(struct duda_test *t, const char *target, const char *type,
                                         const char *body)
{
    char fields[300];
    snprintf(fields, sizeof fields, "Content-Type: %.250s\r\n", type);
    return duda_test_send(
        t, &(struct duda_test_request){.target = target, .headers = fields, .body = mk_str_from_c(body)});
}

mk_str duda_test_response_header(struct duda_test_response reply, const char *name)
{
    return tester_find_header(reply.headers, mk_str_from_c(name));
}

/* ---- Forms ---- */

struct duda_test_response duda_test_post_form(struct duda_test *t, const char *target, ...)
{
    struct mk_buf body = mk_buf_growing(TESTER_BODY_MAX);
    va_list args;
    va_start(args, target);
    for (const char *name; (name = va_arg(args, const char *));) {
        const char *value = va_arg(args, const char *);
        mk_buf_add(&body, body.len ? MK_STR("&") : MK_STR(""));
        mk_url_escape(&body, mk_str_from_c(name));
        mk_buf_add_char(&body, '=');
        mk_url_escape(&body, mk_str_from_c(value));
    }
    va_end(args);
    const struct duda_test_request request = {.method = "POST",
                                              .target = target,
                                              .headers =
                                                  "Content-Type: application/x-www-form-urlencoded\r\n",
                                              .body = body.p ? mk_buf_str(&body) : MK_STR("")};
    struct duda_test_response reply = duda_test_send(t, &request);
    mk_buf_free(&body);
    return reply;
}

/* Escapes the characters that browsers escape in names. */
static void append_quoted(struct mk_buf *out, const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\r' || *text == '\n')
            mk_buf_addf(out, "%%%02X", (unsigned)*text);
        else
            mk_buf_add_char(out, *text);
}

static void append_part(struct mk_buf *out, mk_str boundary, const struct duda_test_part *part)
{
    mk_buf_addf(out, "--%.*s\r\nContent-Disposition: form-data; name=\"", MK_STR_ARG(boundary));
    append_quoted(out, part->name);
    mk_buf_add_char(out, '"');
    if (part->file_name) {
        mk_buf_add(out, MK_STR("; filename=\""));
        append_quoted(out, part->file_name);
        mk_buf_addf(out, "\"\r\nContent-Type: %s", part->type ? part->type : "application/octet-stream");
    } else if (part->type) {
        mk_buf_addf(out, "\r\nContent-Type: %s", part->type);
    }
    mk_buf_add(out, MK_STR("\r\n\r\n"));
    mk_buf_add(out, part->content.p ? part->content : mk_str_from_c(part->value));
    mk_buf_add(out, MK_STR("\r\n"));
}

struct duda_test_response duda_test_post_multipart(struct duda_test *t, const char *target,
                                                   const struct duda_test_part *parts, size_t n)
{
    struct mk_buf body = mk_buf_growing(TESTER_BODY_MAX);
    char random[12], hex[64], headers[160];
    struct mk_buf boundary = mk_buf_fixed(hex, sizeof hex);
    mk_random(random, sizeof random);
    mk_buf_add(&boundary, MK_STR("----DudaTest"));
    mk_hex_encode(&boundary, mk_str_of(random, sizeof random));
    for (size_t i = 0; i < n; i++)
        append_part(&body, mk_buf_str(&boundary), &parts[i]);
    mk_buf_addf(&body, "--%.*s--\r\n", MK_STR_ARG(mk_buf_str(&boundary)));
    snprintf(headers, sizeof headers, "Content-Type: multipart/form-data; boundary=%.*s\r\n",
             MK_STR_ARG(mk_buf_str(&boundary)));
    struct duda_test_response reply = duda_test_send(
        t, &(struct duda_test_request){
               .method = "POST", .target = target, .headers = headers, .body = mk_buf_str(&body)});
    mk_buf_free(&body);
    return reply;
}

/* Returns the first run of exactly CSRF_HEX hexadecimal digits. */
static mk_str find_token(mk_str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = 0;
        while (i + n < text.len && mk_char_hex(text.p[i + n]) >= 0)
            n++;
        if (n == CSRF_HEX)
            return mk_str_first(mk_str_skip(text, i), n);
        i += n + 1;
    }
    return MK_STR_NULL;
}

const char *duda_test_csrf_token(struct duda_test *t, struct duda_test_response response)
{
    static const mk_str mark = MK_STR_INIT("csrf");
    for (mk_str rest = response.body; rest.len >= mark.len;) {
        const char *at = memmem(rest.p, rest.len, mark.p, mark.len);
        if (!at)
            break;
        size_t from = (size_t)(at - rest.p), begin = from;
        while (begin > 0 && rest.p[begin - 1] != '<' && rest.p[begin - 1] != '\n') /* the tag around it */
            begin--;
        mk_str tag = mk_str_skip(rest, begin), token = find_token(mk_str_first(tag, mk_str_find(tag, '>')));
        if (token.p)
            return tester_keep(t, token).p;
        rest = mk_str_skip(rest, from + mark.len);
    }
    tester_fail_request(t, response.method.p ? response.method.p : "GET",
                        response.target.p ? response.target.p : "?", "the response contains no CSRF token");
    return "";
}

/* ---- Redirects ---- */

static bool is_redirect(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Writes the target of a Location header. Returns false if it leads to another host. */
static bool resolve_location(mk_str location, mk_str target, struct mk_buf *out)
{
    static const mk_str schemes[] = {MK_STR_INIT("http://"), MK_STR_INIT("https://")};
    mk_str path = mk_str_first(target, mk_str_find(target, '?'));
    location = mk_str_first(location, mk_str_find(location, '#'));
    for (size_t i = 0; i < MK_LEN(schemes); i++)
        if (mk_str_starts(location, schemes[i])) {
            mk_str rest = mk_str_skip(location, schemes[i].len),
                   host = mk_str_first(rest, mk_str_find(rest, '/'));
            location = mk_str_skip(rest, host.len);
            host = mk_str_first(host, mk_str_find(host, ':'));
            if (!mk_str_eq(host, MK_STR("localhost")))
                return false;
            location = location.len ? location : MK_STR("/");
        }
    if (mk_str_starts(location, MK_STR("//")))
        return false;
    if (location.len && location.p[0] == '?')
        mk_buf_add(out, path);
    else if (!location.len || location.p[0] != '/')
        mk_buf_add(out, mk_str_first(path, mk_str_find_last(path, '/') + 1));
    mk_buf_add(out, location);
    mk_buf_add_char(out, '\0');
    return true;
}

/* Sends the request that a redirect asks for. */
static struct duda_test_response follow_once(struct duda_test *t, const struct duda_test_response *from)
{
    struct mk_buf target = mk_buf_growing(64 * 1024);
    mk_str location = duda_test_response_header(*from, "Location");
    struct duda_test_response reply = {.headers = MK_STR(""), .body = MK_STR("")};
    bool repeats = from->status == 307 || from->status == 308 || mk_str_eq(from->method, MK_STR("HEAD"));
    struct duda_test_request request = {.method = "GET"};
    if (repeats)
        request = (struct duda_test_request){
            .method = from->method.p, .headers = from->request_headers.p, .body = from->request_body};
    if (location.p && resolve_location(location, from->target, &target)) {
        request.target = target.p;
        reply = duda_test_send(t, &request);
    } else {
        tester_fail_request(t, from->method.p, from->target.p,
                            "the redirect leads to another host, or nowhere");
    }
    mk_buf_free(&target);
    return reply;
}

struct duda_test_response duda_test_follow(struct duda_test *t, struct duda_test_response response)
{
    if (!is_redirect(response.status)) {
        if (response.status)
            tester_fail_request(t, response.method.p, response.target.p, "the response is no redirect");
        return response;
    }
    for (unsigned i = 0; i < REDIRECTS_MAX && is_redirect(response.status); i++)
        response = follow_once(t, &response);
    if (is_redirect(response.status))
        tester_fail_request(t, response.method.p, response.target.p, "more than 10 redirects");
    return response;
}
