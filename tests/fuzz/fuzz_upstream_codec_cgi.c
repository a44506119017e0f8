/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes CGI variables for FastCGI, SCGI and uwsgi: they arrive unchanged, or are rejected. */
#include "base/assert.h"
#include "http/fcgi.h"
#include "upstream/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 40, LONG = 300 };

static bool has_nul(mk_str s)
{
    return s.len && memchr(s.p, 0, s.len);
}

static bool is_ours(mk_str name)
{
    return mk_str_eq(name, MK_STR("CONTENT_LENGTH")) || mk_str_eq(name, MK_STR("SCGI"));
}

/* Invalid variables are rejected. Variables that the codecs write themselves are dropped, valid or not. */
static bool is_bad(const struct mk_header *f)
{
    if (is_ours(f->name))
        return false;
    return !f->name.len || memchr(f->name.p, '=', f->name.len) || has_nul(f->name) || has_nul(f->value);
}

/* ---- Parsing ---- */

static mk_str read_bytes(mk_str *in, size_t n)
{
    MK_ASSERT(n <= in->len);
    mk_str part = mk_str_first(*in, n);
    *in = mk_str_skip(*in, n);
    return part;
}

static size_t read_byte(mk_str *in)
{
    return (unsigned char)read_bytes(in, 1).p[0];
}

static mk_str read_until_nul(mk_str *in)
{
    size_t n = mk_str_find(*in, '\0');
    MK_ASSERT(n != MK_STR_NONE);
    mk_str text = read_bytes(in, n);
    (void)read_byte(in);
    return text;
}

static size_t read_length(enum mk_upstream_protocol protocol, mk_str *in)
{
    size_t first = read_byte(in);
    if (protocol == MK_UPSTREAM_PROTOCOL_UWSGI)
        return first | read_byte(in) << 8;
    if (first < 128)
        return first;
    size_t second = read_byte(in), third = read_byte(in);
    return (first & 127) << 24 | second << 16 | third << 8 | read_byte(in);
}

static void read_pair(enum mk_upstream_protocol protocol, mk_str *in, mk_str *name, mk_str *value)
{
    if (protocol == MK_UPSTREAM_PROTOCOL_SCGI) {
        *name = read_until_nul(in);
        *value = read_until_nul(in);
        return;
    }
    size_t n = read_length(protocol, in),
           v = protocol == MK_UPSTREAM_PROTOCOL_FASTCGI ? read_length(protocol, in) : 0;
    *name = read_bytes(in, n);
    *value = read_bytes(in, protocol == MK_UPSTREAM_PROTOCOL_FASTCGI ? v : read_length(protocol, in));
}

/* Joins the parameter records. */
static struct mk_buf join(mk_str in)
{
    struct mk_buf joined = mk_buf_growing(1 << 20);
    (void)read_bytes(&in, 2 * MK_FCGI_HEADER); /* BEGIN */
    for (size_t n = 1; n;) {
        mk_str header = read_bytes(&in, MK_FCGI_HEADER);
        n = (size_t)(unsigned char)header.p[4] << 8 | (unsigned char)header.p[5];
        MK_ASSERT(header.p[1] == MK_FCGI_PARAMS && header.p[6] == 0);
        mk_buf_add(&joined, read_bytes(&in, n));
    }
    MK_ASSERT(!in.len);
    return joined;
}

static mk_str open_scgi(mk_str in)
{
    uint64_t n;
    MK_ASSERT(mk_num_parse(mk_str_cut(&in, ':'), &n) && in.len == n + 1 && in.p[n] == ',');
    return mk_str_first(in, (size_t)n);
}

static void expect_pairs(enum mk_upstream_protocol protocol, mk_str in,
                         const struct mk_upstream_request_options *ask)
{
    mk_str name, value;
    for (size_t i = 0; i < ask->n_headers; i++) {
        const struct mk_header *f = &ask->headers[i];
        if (is_ours(f->name))
            continue;
        do
            read_pair(protocol, &in, &name, &value);
        while (is_ours(name));
        MK_ASSERT(mk_str_eq(name, f->name) && mk_str_eq(value, f->value));
    }
    while (in.len) {
        read_pair(protocol, &in, &name, &value);
        MK_ASSERT(is_ours(name));
    }
}

static void check(enum mk_upstream_protocol protocol, const struct mk_codec_ops *ops,
                  const struct mk_upstream_request_options *ask, bool bad)
{
    struct mk_buf out = mk_buf_growing(1 << 20);
    const char *problem = NULL;
    mk_err e = ops->write_head(&out, ask, &problem);
    MK_ASSERT(!out.failed && bad == (e == -EINVAL) && (!e || problem));
    if (e) { /* invalid, or too long for uwsgi */
        mk_buf_free(&out);
        return;
    }
    if (protocol == MK_UPSTREAM_PROTOCOL_FASTCGI) {
        struct mk_buf joined = join(mk_buf_str(&out));
        expect_pairs(protocol, mk_buf_str(&joined), ask);
        mk_buf_free(&joined);
    } else {
        expect_pairs(protocol,
                     protocol == MK_UPSTREAM_PROTOCOL_SCGI ? open_scgi(mk_buf_str(&out))
                                                           : mk_str_skip(mk_buf_str(&out), 4),
                     ask);
    }
    mk_buf_free(&out);
}

/* Each string is preceded by its length; a set highest bit means a longer length field. */
static mk_str next_text(mk_str *in)
{
    if (!in->len)
        return MK_STR("");
    size_t n = read_byte(in);
    return read_bytes(in, mk_min(n & 128 ? (n & 127) * LONG : n, in->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_header fields[FIELDS];
    mk_str in = mk_str_of((const char *)data, size);
    struct mk_upstream_request_options ask = {.method = MK_STR("POST"), .headers = fields};
    bool bad = false;
    ask.length = in.len ? (int64_t)read_byte(&in) : 0;
    for (; in.len && ask.n_headers < FIELDS; ask.n_headers++) {
        struct mk_header *f = &fields[ask.n_headers];
        f->name = next_text(&in);
        f->value = next_text(&in);
        bad |= is_bad(f);
    }
    check(MK_UPSTREAM_PROTOCOL_FASTCGI, &mk_codec_fastcgi, &ask, bad);
    check(MK_UPSTREAM_PROTOCOL_SCGI, &mk_codec_scgi, &ask, bad);
    check(MK_UPSTREAM_PROTOCOL_UWSGI, &mk_codec_uwsgi, &ask, bad);
    return 0;
}
