/* SPDX-License-Identifier: Apache-2.0 */
#include "http/framing.h"

#include "base/num.h"
#include "http/scan.h"

/* Does the header have more than one field line? */
static bool is_header_repeated(const struct mk_headers *fields, enum mk_header_id id)
{
    unsigned at = fields->first[id];
    mk_str value;
    return at && at < fields->n && mk_headers_find_next(fields, id, &at, &value);
}

static int parse_host_header(const struct mk_request_head *h, struct mk_authority_cache *last,
                             struct mk_framing *out)
{
    mk_str value = mk_headers_get(&h->fields, MK_HEADER_HOST);
    if (!value.p)
        return h->minor == 0 ? 0 : 400;
    if (is_header_repeated(&h->fields, MK_HEADER_HOST))
        return 400;
    return mk_authority_parse_cached(last, value, &out->host, &out->port);
}

struct codings {
    bool chunked, others;
};

/* `chunked` is allowed once, last and without parameters (RFC 9112, section 7.1). Empty elements, which other
 * lists may contain, are rejected: legitimate clients do not send them. */
static int parse_transfer_coding(mk_str element, struct codings *seen)
{
    bool has_parameters = mk_str_find(element, ';') != MK_STR_NONE;
    mk_str name = mk_str_trim(mk_str_cut(&element, ';'));
    if (!mk_is_token(name) || seen->chunked)
        return 400;
    if (!mk_str_eq_nocase(name, MK_STR("chunked"))) {
        seen->others = true;
        return 0;
    }
    seen->chunked = true;
    return has_parameters ? 400 : 0;
}

static int parse_transfer_encoding(const struct mk_request_head *h, struct mk_framing *out)
{
    struct codings seen = {0};
    if (h->minor == 0 || mk_headers_has(&h->fields, MK_HEADER_CONTENT_LENGTH))
        return 400;
    mk_str value;
    for (unsigned at = 0; mk_headers_next(&h->fields, MK_HEADER_TRANSFER_ENCODING, &at, &value);) {
        while (value.p) {
            mk_str element = mk_str_trim(mk_str_cut(&value, ','));
            int status = parse_transfer_coding(element, &seen);
            if (status)
                return status;
        }
    }
    out->body = MK_BODY_CHUNKED;
    return !seen.chunked ? 400 : seen.others ? 501 : 0;
}

static int parse_content_length(const struct mk_request_head *h, struct mk_framing *out)
{
    mk_str value = mk_headers_get(&h->fields, MK_HEADER_CONTENT_LENGTH);
    if (is_header_repeated(&h->fields, MK_HEADER_CONTENT_LENGTH) || !mk_num_parse(value, &out->length))
        return 400;
    out->body = out->length ? MK_BODY_LENGTH : MK_BODY_NONE;
    return 0;
}

/* Without Transfer-Encoding and Content-Length, a request has no body, whatever its method (RFC 9112, section
 * 6.3). */
static int parse_body_length(const struct mk_request_head *h, struct mk_framing *out)
{
    if (mk_headers_has(&h->fields, MK_HEADER_TRANSFER_ENCODING))
        return parse_transfer_encoding(h, out);
    if (mk_headers_has(&h->fields, MK_HEADER_CONTENT_LENGTH))
        return parse_content_length(h, out);
    return 0;
}

int mk_framing_parse_expect(const struct mk_headers *fields, bool *wants_continue)
{
    mk_str value, element;
    *wants_continue = false;
    for (unsigned at = 0; mk_headers_next(fields, MK_HEADER_EXPECT, &at, &value);)
        while (mk_header_list_next(&value, &element)) {
            if (!mk_str_eq_nocase(element, MK_STR("100-continue")))
                return 417;
            *wants_continue = true;
        }
    return 0;
}

static int parse_expect(const struct mk_request_head *h, struct mk_framing *out)
{
    if (h->minor == 0 || !mk_headers_has(&h->fields, MK_HEADER_EXPECT))
        return 0;
    int status = mk_framing_parse_expect(&h->fields, &out->expect_continue);
    out->expect_continue &= out->body != MK_BODY_NONE;
    return status;
}

/* Browsers send exactly this value. */
static bool is_keep_alive(mk_str value)
{
    mk_str expected = MK_STR("keep-alive");
    return value.len == expected.len && mk_scan_is_header_name(value.p, expected.p, expected.len);
}

MK_NOINLINE static bool has_close(const struct mk_headers *fields)
{
    mk_str value;
    for (unsigned at = 0; mk_headers_next(fields, MK_HEADER_CONNECTION, &at, &value);)
        if (!is_keep_alive(value) && mk_header_list_has(value, MK_STR("close")))
            return true;
    return false;
}

static bool wants_keep_alive(const struct mk_request_head *h)
{
    if (!mk_headers_has(&h->fields, MK_HEADER_CONNECTION))
        return h->minor > 0;
    if (has_close(&h->fields))
        return false;
    return h->minor > 0 || mk_headers_has_token(&h->fields, MK_HEADER_CONNECTION, MK_STR("keep-alive"));
}

int mk_framing_parse(const struct mk_request_head *h, struct mk_authority_cache *last, struct mk_framing *out)
{
    *out = (struct mk_framing){.body = MK_BODY_NONE, .port = MK_PORT_NONE};
    int status = parse_host_header(h, last, out);
    if (!status)
        status = parse_body_length(h, out);
    if (!status)
        status = parse_expect(h, out);
    out->keep_alive = wants_keep_alive(h);
    bool is_long = mk_headers_count_elements(&h->fields, MK_HEADER_CONNECTION) > MK_CONNECTION_MAX;
    return status ? status : is_long ? 400 : 0;
}
