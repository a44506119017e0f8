/* SPDX-License-Identifier: Apache-2.0 */
#include "http2client/h2_response_head.h"

#include <monkey/text.h>

#include "http/header.h"
#include "http/scan.h"

static const char too_long[] = "the response head is longer than 32 KB";

void mk_h2_response_head_init(struct mk_h2_response_head *h, char *buf, size_t cap, bool is_trailers,
                              bool is_connect)
{
    *h = (struct mk_h2_response_head){
        .text = mk_buf_fixed(buf, cap), .is_trailers = is_trailers, .is_connect = is_connect};
}

static int set_problem(struct mk_h2_response_head *h, const char *problem)
{
    h->problem = problem;
    return -1;
}

static int set_status(struct mk_h2_response_head *h, mk_str name, mk_str value)
{
    uint64_t status = 0;
    if (h->is_trailers || h->status || h->text.len || !mk_str_eq(name, MK_STR(":status")))
        return set_problem(h, "the response has an unexpected pseudo-header");
    if (value.len != 3 || !mk_num_parse(value, &status) || status < 100 || status > 599 || status == 101)
        return set_problem(h, "the response has an invalid :status");
    h->status = (unsigned)status;
    bool opens_tunnel = h->is_connect && status >= 200 && status < 300;
    mk_buf_add(&h->text, MK_STR("HTTP/1.1 "));
    mk_buf_add(&h->text, opens_tunnel ? MK_STR("101") : value);
    mk_buf_add(&h->text,
               opens_tunnel ? MK_STR(" \r\nUpgrade: websocket\r\nConnection: Upgrade\r\n") : MK_STR(" \r\n"));
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_valid_value(mk_str value)
{
    return mk_is_header_value(value) &&
           !(value.len && (is_blank(value.p[0]) || is_blank(value.p[value.len - 1])));
}

/* Is it a header of an HTTP/1 connection, which HTTP/2 forbids (RFC 9113, section 8.2.2)? */
static bool is_of_connection(enum mk_header_id id)
{
    return mk_header_is_hop_by_hop(id) && id != MK_HEADER_CONTENT_LENGTH && id != MK_HEADER_TE;
}

int mk_h2_response_head_on_header(void *head, mk_str name, mk_str value)
{
    struct mk_h2_response_head *h = head;
    if (name.len && name.p[0] == ':')
        return set_status(h, name, value);
    if (!h->is_trailers && !h->status)
        return set_problem(h, "the response has no :status");
    if (!mk_is_token(name) || mk_scan_has_capitals(name) || !is_valid_value(value))
        return set_problem(h, "the response has an invalid header");
    if (is_of_connection(mk_header_find_id(name)))
        return set_problem(h, "the response has a header that HTTP/2 forbids");
    mk_header_append(&h->text, name, value);
    return h->text.failed ? set_problem(h, too_long) : 0;
}

bool mk_h2_response_head_finish(struct mk_h2_response_head *h)
{
    if (!h->problem && !h->is_trailers && !h->status)
        h->problem = "the response has no :status";
    if (!h->is_trailers)
        mk_buf_add(&h->text, MK_STR("\r\n"));
    if (!h->problem && h->text.failed)
        h->problem = too_long;
    return !h->problem;
}
