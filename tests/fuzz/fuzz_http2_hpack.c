/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte selects the direction. Decoding: the other bytes are the header blocks of one connection,
 * each preceded by its length; their fields become request heads. Skipped fields of a block do not affect the
 * next block. Encoding: the other bytes are fields; once encoded, they must decode to the same fields. */
#include "base/assert.h"
#include "http/authority.h"
#include "http2/h2_head.h"
#include "http2frame/hpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS_MAX = 16, HEADS_MAX = 2000, SHOWN_MAX = 1 << 16 };

static const struct mk_request_head_limits limits = {
    .head_max = HEADS_MAX, .target_max = 100, .fields_max = FIELDS_MAX};

static mk_str cut(mk_str *rest, size_t len)
{
    mk_str part = mk_str_first(*rest, len);
    *rest = mk_str_skip(*rest, len);
    return part;
}

static size_t cut_number(mk_str *rest)
{
    mk_str byte = cut(rest, 1);
    return byte.len ? (unsigned char)byte.p[0] : 0;
}

/* ---- Decoding ---- */

/* The reported fields, and the number of fields to accept. */
struct shown {
    struct mk_buf text;
    unsigned n, wanted;
};

static int on_field(void *ctx, mk_str name, mk_str value)
{
    struct shown *s = ctx;
    MK_ASSERT(s->n <= s->wanted);
    if (s->n == s->wanted)
        return -1;
    s->n++;
    mk_buf_add(&s->text, name);
    mk_buf_add_char(&s->text, '\n');
    mk_buf_add(&s->text, value);
    mk_buf_add_char(&s->text, '\n');
    return 0;
}

static void check_head(mk_str method, const struct mk_h2_head *h)
{
    bool is_connect = mk_str_eq(method, MK_STR("CONNECT")) && !h->protocol.p;
    MK_ASSERT(mk_is_token(method) && method.len <= MK_REQUEST_HEAD_METHOD_MAX);
    MK_ASSERT(is_connect || (h->path.len > 0 && h->path.len <= limits.target_max));
    MK_ASSERT(is_connect || h->path.p[0] == '/' || mk_str_eq(h->path, MK_STR("*")));
    MK_ASSERT(h->host.len > 0 && h->port <= MK_PORT_NONE && mk_headers_has(&h->fields, MK_HEADER_HOST));
    MK_ASSERT(!mk_headers_has(&h->fields, MK_HEADER_TRANSFER_ENCODING));
    MK_ASSERT(!mk_headers_has(&h->fields, MK_HEADER_CONNECTION));
    MK_ASSERT(h->has_length == mk_headers_has(&h->fields, MK_HEADER_CONTENT_LENGTH));
    unsigned n_cookies = 0;
    mk_str value;
    for (unsigned at = 0; mk_headers_next(&h->fields, MK_HEADER_COOKIE, &at, &value);)
        n_cookies++;
    MK_ASSERT(n_cookies <= 1);
}

static void check_fields(const struct mk_headers *fields)
{
    MK_ASSERT(fields->n <= FIELDS_MAX);
    for (unsigned i = 0; i < fields->n; i++) {
        const struct mk_header_field *f = &fields->at[i];
        MK_ASSERT(mk_is_token(f->name) && mk_is_header_value(f->value));
        MK_ASSERT(mk_str_trim(f->value).len == f->value.len || f->id == MK_HEADER_COOKIE);
        MK_ASSERT(mk_header_find_id(f->name) == f->id);
        unsigned first = fields->first[f->id];
        MK_ASSERT(first > 0 && first <= i + 1 && fields->at[first - 1].id == f->id);
    }
}

static void decode_head(struct mk_hpack_decoder *decoder, mk_str block, mk_err expected, bool is_trailers)
{
    struct mk_header_field buffer[FIELDS_MAX];
    struct mk_arena arena;
    struct mk_h2_head h;
    mk_arena_init(&arena, NULL);
    mk_h2_head_init(&h, &arena, buffer, &limits, is_trailers);
    mk_err e = mk_hpack_decode(decoder, block, mk_h2_head_on_header, &h);
    int answer = mk_h2_head_finish(&h);
    MK_ASSERT(e == expected || (e == -ECANCELED && answer));
    MK_ASSERT(answer == 0 || answer == MK_H2_HEAD_MALFORMED || answer == 431 ||
              (!is_trailers && (answer == 400 || answer == 414 || answer == 417 || answer == 501)));
    if (answer == 0)
        MK_ASSERT(h.size <= limits.head_max);
    check_fields(&h.fields);
    if (e == 0 && answer == 0 && !is_trailers)
        check_head(h.method_text, &h);
    mk_arena_fini(&arena);
}

/* Three decoders get the same input: one reads all fields, one some, and one builds request heads. */
static void decode(mk_str rest)
{
    struct mk_hpack_decoder *all = mk_hpack_decoder_new(), *some = mk_hpack_decoder_new(),
                            *heads = mk_hpack_decoder_new();
    MK_ASSERT(all && some && heads);
    mk_err e = 0;
    while (rest.len && e != -EBADMSG) {
        size_t how = cut_number(&rest);
        mk_str block = cut(&rest, cut_number(&rest));
        struct shown a = {.text = mk_buf_growing(SHOWN_MAX), .wanted = UINT32_MAX};
        struct shown b = {.text = mk_buf_growing(SHOWN_MAX), .wanted = how % 8};
        e = mk_hpack_decode(all, block, on_field, &a);
        mk_err e2 = mk_hpack_decode(some, block, on_field, &b);
        MK_ASSERT(e == 0 || e == -EBADMSG);
        MK_ASSERT(e2 == (e == 0 && a.n > b.wanted ? -ECANCELED : e));
        MK_ASSERT(b.n == mk_min(a.n, b.wanted));
        MK_ASSERT(a.text.failed || mk_str_starts(mk_buf_str(&a.text), mk_buf_str(&b.text)));
        decode_head(heads, block, e, how & 8);
        mk_buf_free(&a.text);
        mk_buf_free(&b.text);
    }
    mk_hpack_decoder_free(all);
    mk_hpack_decoder_free(some);
    mk_hpack_decoder_free(heads);
}

/* ---- Encoding ---- */

/* The encoded fields, to compare with the decoded ones. */
struct sent {
    mk_str rest;
    size_t status;
};

static bool is_same_name(mk_str sent, mk_str got)
{
    if (sent.len != got.len)
        return false;
    for (size_t i = 0; i < sent.len; i++)
        if (mk_char_lower(sent.p[i]) != got.p[i])
            return false;
    return true;
}

static int on_return(void *ctx, mk_str name, mk_str value)
{
    struct sent *s = ctx;
    if (s->status) {
        MK_ASSERT(mk_str_eq(name, MK_STR(":status")) && value.len == 3);
        MK_ASSERT((size_t)(value.p[0] - '0') * 100 + (size_t)(value.p[1] - '0') * 10 +
                      (size_t)(value.p[2] - '0') ==
                  s->status);
        s->status = 0;
        return 0;
    }
    MK_ASSERT(s->rest.len);
    (void)cut_number(&s->rest);
    mk_str sent_name = cut(&s->rest, cut_number(&s->rest));
    mk_str sent_value = cut(&s->rest, cut_number(&s->rest));
    MK_ASSERT(is_same_name(sent_name, name) && mk_str_eq(sent_value, value));
    return 0;
}

static void encode(mk_str rest)
{
    struct sent sent = {.status = 100 + cut_number(&rest)};
    struct mk_buf out = mk_buf_growing(1 << 20);
    sent.rest = rest;
    mk_hpack_encode_status(&out, (unsigned)sent.status);
    while (rest.len) {
        bool is_secret = cut_number(&rest) & 1;
        mk_str name = cut(&rest, cut_number(&rest)), value = cut(&rest, cut_number(&rest));
        if (is_secret)
            mk_hpack_encode_never_indexed(&out, name, value);
        else
            mk_hpack_encode(&out, name, value);
    }
    MK_ASSERT(!out.failed);
    struct mk_hpack_decoder *decoder = mk_hpack_decoder_new();
    MK_ASSERT(decoder);
    MK_ASSERT(mk_hpack_decode(decoder, mk_buf_str(&out), on_return, &sent) == 0);
    MK_ASSERT(sent.rest.len == 0);
    mk_hpack_decoder_free(decoder);
    mk_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str rest = mk_str_of((const char *)data, size);
    if (cut_number(&rest) & 1)
        encode(rest);
    else
        decode(rest);
    return 0;
}
