/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 on the socket of the shell: reads a request, and translates it into a command of the shell. */
#ifndef CHEETAH_HTTP_H
#define CHEETAH_HTTP_H

#include <monkey/plugin.h>

enum { CHEETAH_HTTP_CONTENT_MAX = 4095, CHEETAH_HTTP_TARGET_MAX = 1024, CHEETAH_HTTP_HEADERS_MAX = 64 };

struct cheetah_http {
    bool is_active; /* a request is being read, or its response is not complete */
    bool has_head;
    bool is_head_sent, is_chunked; /* of the response */
    bool closes;                   /* the connection ends after the response */
    bool has_length;
    unsigned n_headers;
    size_t length; /* of the content of the request */
    char method[8];
    char target[CHEETAH_HTTP_TARGET_MAX];
    struct mk_buf content, notes; /* of the response */
};

/* The content of a response. */
enum cheetah_http_type { CHEETAH_HTTP_TEXT, CHEETAH_HTTP_JSON, CHEETAH_HTTP_JSON_LINES };

/* An error of a request. status 0: none. */
struct cheetah_http_error {
    unsigned status;
    const char *text;
};

/* Is this line of input a request line? Other lines are commands. */
bool cheetah_http_is_request_line(mk_str line);
struct cheetah_http_error cheetah_http_begin(struct cheetah_http *h, mk_str line);
/* Reads a header, or the empty line after the headers, which sets has_head. */
struct cheetah_http_error cheetah_http_read_line(struct cheetah_http *h, mk_str line);
/* Appends the command for the request. *type: what the command prints. */
struct cheetah_http_error cheetah_http_command(const struct cheetah_http *h, mk_str content,
                                               struct mk_buf *command, enum cheetah_http_type *type);

/* Appends the head of the response. `length` < 0: the response is chunked. */
void cheetah_http_write_head(struct cheetah_http *h, struct mk_buf *out, unsigned status,
                             enum cheetah_http_type type, int64_t length);
void cheetah_http_write_chunk(struct mk_buf *out, mk_str data);
/* Appends the content {"error": TEXT} or {"message": TEXT}, with the remarks. */
void cheetah_http_write_text(const struct cheetah_http *h, struct mk_buf *out, const char *key, mk_str text);
/* Prepares for the next request. */
void cheetah_http_reset(struct cheetah_http *h);

#endif
