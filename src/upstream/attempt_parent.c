/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/attempt_parent.h"

#include <monkey/attempt.h>
#include <monkey/trace.h>

#include "upstream/conn.h"
#include "upstream/request_state.h"

enum { ID = 16, FROM = 36 }; /* of the span ID in traceparent */

/* What precedes the value of traceparent in the head of each protocol: HTTP/1.1, HTTP/2, FastCGI, SCGI, uwsgi. Clients control URLs
 * and other headers, but cannot write these bytes there. Only the decoded path of FastCGI may contain them, and it comes
 * before the headers, so that the last match counts. */
static const mk_str prefixes[] = {
    MK_STR_INIT("\r\ntraceparent: "),
    MK_STR_INIT("\x0btraceparent\x37"),
    MK_STR_INIT("\x10\x37HTTP_TRACEPARENT"),
    MK_STR_INIT("\0HTTP_TRACEPARENT\0"),
    MK_STR_INIT("\x10\0HTTP_TRACEPARENT\x37\0"),
};

/* Returns the end of the last match, or NULL. */
static char *find_after_last(char *from, const char *end, mk_str text)
{
    char *after = NULL;
    for (char *at; (at = memmem(from, (size_t)(end - from), text.p, text.len)); from = after)
        after = at + text.len;
    return after;
}

/* Replaces the parent in the traceparent of a head, unless a hook has set another traceparent. */
static void set_parent_span(struct mk_buf *head, size_t len, const char text[MK_TRACEPARENT_SIZE])
{
    for (size_t i = 0; len && i < MK_LEN(prefixes); i++) {
        char *at = find_after_last(head->p, head->p + len, prefixes[i]);
        if (at && (size_t)(head->p + len - at) >= MK_TRACEPARENT_SIZE && memcmp(at, text, FROM) == 0)
            memcpy(at + FROM, text + FROM, ID);
    }
}

void mk_attempt_parent_set(struct mk_upstream_request *c)
{
    const struct mk_request *request = c->conn->options.request;
    const struct mk_trace *trace = mk_request_trace(request);
    char text[MK_TRACEPARENT_SIZE];
    if (!trace || !trace->is_recorded)
        return;
    (void)mk_request_format_traceparent(request, c->conn->attempt->span_id, text);
    set_parent_span(&c->out, c->head_len, text);
    if (c->http1_head)
        set_parent_span(c->http1_head, c->http1_head->len, text);
}
