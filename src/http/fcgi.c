/* SPDX-License-Identifier: Apache-2.0 */
#include "http/fcgi.h"

#include "base/assert.h"

enum { VERSION = 1, RESPONDER = 1, KEEP_CONNECTION = 1, END_LEN = 8, LONG_LENGTH = 128 };

enum state {
    HEADER,  /* record header */
    CONTENT, /* content of a STDOUT or STDERR record */
    ENDING,  /* content of END_REQUEST */
    PADDING, /* padding of any record */
    OVER,
    BAD,
};

/* ---- Writing ---- */

void mk_fcgi_write_header(char out[MK_FCGI_HEADER], enum mk_fcgi_type type, size_t len)
{
    MK_ASSERT(len <= MK_FCGI_CONTENT_MAX);
    out[0] = VERSION;
    out[1] = (char)type;
    out[2] = 0;
    out[3] = MK_FCGI_REQUEST;
    out[4] = (char)(len >> 8);
    out[5] = (char)(len & 0xff);
    out[6] = out[7] = 0;
}

static void append_record_header(struct mk_buf *out, enum mk_fcgi_type type, size_t len)
{
    char header[MK_FCGI_HEADER];
    mk_fcgi_write_header(header, type, len);
    mk_buf_put(out, mk_str_of(header, sizeof header));
}

void mk_fcgi_append_begin_request(struct mk_buf *out)
{
    static const char content[] = {0, RESPONDER, KEEP_CONNECTION, 0, 0, 0, 0, 0};
    append_record_header(out, MK_FCGI_BEGIN, sizeof content);
    mk_buf_put(out, mk_str_of(content, sizeof content));
}

size_t mk_fcgi_begin_params(struct mk_buf *out)
{
    size_t begun = out->len;
    append_record_header(out, MK_FCGI_PARAMS, 0); /* mk_fcgi_end_params() fills in the length */
    return begun;
}

static bool is_short_param_len(size_t len)
{
    return len < LONG_LENGTH;
}

/* Adds the number of NUL bytes among the written bytes to *nuls. */
static char *put_param_length(char *at, size_t len, size_t *nuls)
{
    if (is_short_param_len(len)) {
        *nuls += len == 0;
        *at++ = (char)len;
        return at;
    }
    *at++ = (char)(0x80 | (len >> 24 & 0x7f));
    for (unsigned shift = 24; shift;) {
        uint8_t byte = (uint8_t)(len >> (shift -= 8));
        *nuls += byte == 0;
        *at++ = (char)byte;
    }
    return at;
}

/* Writes both lengths of a pair. Usually, each takes one byte. */
static inline char *put_param_lengths(char *at, size_t name, size_t value, size_t *nuls)
{
    if (MK_UNLIKELY(!is_short_param_len(name | value)))
        return put_param_length(put_param_length(at, name, nuls), value, nuls);
    at[0] = (char)name;
    at[1] = (char)value;
    *nuls = (size_t)(name == 0) + (value == 0);
    return at + 2;
}

static inline char *put_text(char *at, mk_str s)
{
    if (s.len)
        memcpy(at, s.p, s.len);
    return at + s.len;
}

size_t mk_fcgi_append_param(struct mk_buf *out, mk_str name, mk_str value)
{
    enum { LENGTHS_MAX = 8 };
    size_t space = LENGTHS_MAX + name.len + value.len;
    if (MK_UNLIKELY(out->failed || out->cap - out->len < space) && !mk_buf_reserve(out, space))
        return 0;
    size_t nuls = 0;
    char *at = put_text(put_param_lengths(out->p + out->len, name.len, value.len, &nuls), name);
    out->len = (size_t)(put_text(at, value) - out->p);
    return nuls;
}

/* Splits the parameters into records: inserts the additional record headers, and moves the records,
 * beginning with the last. */
void mk_fcgi_end_params(struct mk_buf *out, size_t begun)
{
    if (out->failed)
        return;
    size_t len = out->len - begun - MK_FCGI_HEADER, last = len ? (len - 1) / MK_FCGI_CONTENT_MAX : 0;
    if (!mk_buf_reserve(out, last * MK_FCGI_HEADER))
        return;
    char *from = out->p + begun + MK_FCGI_HEADER, *to = out->p + begun;
    out->len += last * MK_FCGI_HEADER;
    for (size_t i = last + 1; i-- > 0;) {
        size_t at = i * MK_FCGI_CONTENT_MAX, n = mk_min(len - at, MK_FCGI_CONTENT_MAX);
        char *header = to + at + i * MK_FCGI_HEADER;
        memmove(header + MK_FCGI_HEADER, from + at, n);
        mk_fcgi_write_header(header, MK_FCGI_PARAMS, n);
    }
    if (len)
        append_record_header(out, MK_FCGI_PARAMS, 0);
}

/* ---- Reading ---- */

void mk_fcgi_init(struct mk_fcgi *f)
{
    *f = (struct mk_fcgi){.state = HEADER};
}

static void set_parse_error(struct mk_fcgi *f, const char *problem)
{
    f->state = BAD;
    f->problem = problem;
}

/* Collects the eight bytes of a record header, or of the content of END_REQUEST, in f->block. True: all have
 * arrived. */
static bool fill_header_block(struct mk_fcgi *f, mk_str *in)
{
    mk_str part = mk_str_first(*in, sizeof f->block - f->n_block);
    if (part.len)
        memcpy(f->block + f->n_block, part.p, part.len);
    *in = mk_str_skip(*in, part.len);
    f->n_block = (uint8_t)(f->n_block + part.len);
    if (f->n_block < sizeof f->block)
        return false;
    f->n_block = 0;
    return true;
}

static const char *check_record_header(const struct mk_fcgi *f)
{
    if (f->block[0] != VERSION)
        return "a record with an unsupported FastCGI version";
    if (f->block[2] != 0 || f->block[3] != MK_FCGI_REQUEST)
        return "a record with another request ID";
    if (f->type == MK_FCGI_END)
        return f->left == END_LEN ? NULL : "an END_REQUEST record with an invalid length";
    if (f->type != MK_FCGI_STDOUT && f->type != MK_FCGI_STDERR)
        return "a record with an invalid type";
    return f->type == MK_FCGI_STDOUT && f->is_out_over ? "a STDOUT record after the end of STDOUT" : NULL;
}

static void parse_record_header(struct mk_fcgi *f, mk_str *in)
{
    if (!fill_header_block(f, in))
        return;
    f->type = f->block[1];
    f->left = (uint16_t)(f->block[4] << 8 | f->block[5]);
    f->padding = f->block[6];
    const char *wrong = check_record_header(f);
    if (wrong) {
        set_parse_error(f, wrong);
        return;
    }
    f->is_out_over |= f->type == MK_FCGI_STDOUT && f->left == 0;
    f->state = f->type == MK_FCGI_END ? ENDING : CONTENT;
}

static void parse_end_request(struct mk_fcgi *f, mk_str *in)
{
    if (!fill_header_block(f, in))
        return;
    f->status = f->block[4];
    f->state = PADDING;
    if (f->status > MK_FCGI_UNKNOWN_ROLE)
        set_parse_error(f, "an END_REQUEST record with an unknown status");
}

static void skip_padding(struct mk_fcgi *f, mk_str *in)
{
    size_t n = mk_min(f->padding, in->len);
    f->padding = (uint8_t)(f->padding - n);
    *in = mk_str_skip(*in, n);
    if (f->padding == 0)
        f->state = f->type == MK_FCGI_END ? OVER : HEADER;
}

static enum mk_fcgi_event take_record_content(struct mk_fcgi *f, mk_str *in, mk_str *data)
{
    *data = mk_str_first(*in, f->left);
    *in = mk_str_skip(*in, data->len);
    f->left = (uint16_t)(f->left - data->len);
    return f->type == MK_FCGI_STDOUT ? MK_FCGI_OUT : MK_FCGI_ERR;
}

enum mk_fcgi_event mk_fcgi_parse(struct mk_fcgi *f, mk_str *in, mk_str *data)
{
    for (;;) {
        if (f->state == CONTENT && f->left == 0)
            f->state = PADDING;
        if (f->state == PADDING)
            skip_padding(f, in); /* possibly empty */
        if (f->state == OVER)
            return MK_FCGI_OVER;
        if (f->state == BAD)
            return MK_FCGI_BAD;
        if (in->len == 0)
            return MK_FCGI_MORE;
        if (f->state == CONTENT)
            return take_record_content(f, in, data);
        if (f->state == ENDING)
            parse_end_request(f, in);
        else if (f->state == HEADER)
            parse_record_header(f, in);
    }
}

void mk_fcgi_unread(struct mk_fcgi *f, mk_str *in, size_t n)
{
    MK_ASSERT(f->state == CONTENT && f->type == MK_FCGI_STDOUT && n <= MK_FCGI_CONTENT_MAX - (size_t)f->left);
    f->left = (uint16_t)(f->left + n);
    *in = mk_str_of(in->p - n, in->len + n);
}
