/* SPDX-License-Identifier: Apache-2.0 */
/* The IANA registry as of 2025, without 306 and 418, which it lists as unused. */
#include "http/status.h"

#include <monkey/http.h>

static const mk_str informational[] = {
    [0] = MK_STR_INIT("100 Continue"),
    [1] = MK_STR_INIT("101 Switching Protocols"),
    [2] = MK_STR_INIT("102 Processing"),
    [3] = MK_STR_INIT("103 Early Hints"),
    [4] = MK_STR_INIT("104 Upload Resumption Supported"),
};
static const mk_str successful[] = {
    [0] = MK_STR_INIT("200 OK"),
    [1] = MK_STR_INIT("201 Created"),
    [2] = MK_STR_INIT("202 Accepted"),
    [3] = MK_STR_INIT("203 Non-Authoritative Information"),
    [4] = MK_STR_INIT("204 No Content"),
    [5] = MK_STR_INIT("205 Reset Content"),
    [6] = MK_STR_INIT("206 Partial Content"),
    [7] = MK_STR_INIT("207 Multi-Status"),
    [8] = MK_STR_INIT("208 Already Reported"),
    [26] = MK_STR_INIT("226 IM Used"),
};
static const mk_str redirections[] = {
    [0] = MK_STR_INIT("300 Multiple Choices"),
    [1] = MK_STR_INIT("301 Moved Permanently"),
    [2] = MK_STR_INIT("302 Found"),
    [3] = MK_STR_INIT("303 See Other"),
    [4] = MK_STR_INIT("304 Not Modified"),
    [5] = MK_STR_INIT("305 Use Proxy"),
    [7] = MK_STR_INIT("307 Temporary Redirect"),
    [8] = MK_STR_INIT("308 Permanent Redirect"),
};
static const mk_str client_errors[] = {
    [0] = MK_STR_INIT("400 Bad Request"),
    [1] = MK_STR_INIT("401 Unauthorized"),
    [2] = MK_STR_INIT("402 Payment Required"),
    [3] = MK_STR_INIT("403 Forbidden"),
    [4] = MK_STR_INIT("404 Not Found"),
    [5] = MK_STR_INIT("405 Method Not Allowed"),
    [6] = MK_STR_INIT("406 Not Acceptable"),
    [7] = MK_STR_INIT("407 Proxy Authentication Required"),
    [8] = MK_STR_INIT("408 Request Timeout"),
    [9] = MK_STR_INIT("409 Conflict"),
    [10] = MK_STR_INIT("410 Gone"),
    [11] = MK_STR_INIT("411 Length Required"),
    [12] = MK_STR_INIT("412 Precondition Failed"),
    [13] = MK_STR_INIT("413 Content Too Large"),
    [14] = MK_STR_INIT("414 URI Too Long"),
    [15] = MK_STR_INIT("415 Unsupported Media Type"),
    [16] = MK_STR_INIT("416 Range Not Satisfiable"),
    [17] = MK_STR_INIT("417 Expectation Failed"),
    [21] = MK_STR_INIT("421 Misdirected Request"),
    [22] = MK_STR_INIT("422 Unprocessable Content"),
    [23] = MK_STR_INIT("423 Locked"),
    [24] = MK_STR_INIT("424 Failed Dependency"),
    [25] = MK_STR_INIT("425 Too Early"),
    [26] = MK_STR_INIT("426 Upgrade Required"),
    [28] = MK_STR_INIT("428 Precondition Required"),
    [29] = MK_STR_INIT("429 Too Many Requests"),
    [31] = MK_STR_INIT("431 Request Header Fields Too Large"),
    [51] = MK_STR_INIT("451 Unavailable For Legal Reasons"),
};
static const mk_str server_errors[] = {
    [0] = MK_STR_INIT("500 Internal Server Error"),
    [1] = MK_STR_INIT("501 Not Implemented"),
    [2] = MK_STR_INIT("502 Bad Gateway"),
    [3] = MK_STR_INIT("503 Service Unavailable"),
    [4] = MK_STR_INIT("504 Gateway Timeout"),
    [5] = MK_STR_INIT("505 HTTP Version Not Supported"),
    [6] = MK_STR_INIT("506 Variant Also Negotiates"),
    [7] = MK_STR_INIT("507 Insufficient Storage"),
    [8] = MK_STR_INIT("508 Loop Detected"),
    [10] = MK_STR_INIT("510 Not Extended"),
    [11] = MK_STR_INIT("511 Network Authentication Required"),
};

static const struct {
    const mk_str *texts;
    size_t n;
} classes[] = {
    [1] = {informational, MK_LEN(informational)}, [2] = {successful, MK_LEN(successful)},
    [3] = {redirections, MK_LEN(redirections)},   [4] = {client_errors, MK_LEN(client_errors)},
    [5] = {server_errors, MK_LEN(server_errors)},
};

mk_str mk_status_text(unsigned status)
{
    unsigned class = status / 100, code = status % 100;
    if (class >= MK_LEN(classes) || code >= classes[class].n || !classes[class].texts[code].p)
        return MK_STR("");
    return classes[class].texts[code];
}

mk_str mk_status_phrase(unsigned status)
{
    mk_str text = mk_status_text(status);
    return text.len ? mk_str_skip(text, 4) : MK_STR_NULL;
}
