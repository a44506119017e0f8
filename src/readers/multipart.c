/* SPDX-License-Identifier: Apache-2.0 */
/* Splits multipart/form-data into parts. */
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/multipart.h>

#include "readers/multipart_header.h"

enum {
    PARTS_DEFAULT = 256,
    HEAD_DEFAULT = 4096,
    NAME_DEFAULT = 256,
    VALUE_DEFAULT = 64 << 10,
    FILE_DEFAULT = 16 << 20,
    SIZE_DEFAULT = 32 << 20,
    BUF_SIZE = MK_PART_HEAD_MAX + 4096,
    MARK_MAX = MK_BOUNDARY_MAX + 4,
    PADDING_MAX = 256, /* white space after a boundary */
};

enum state { PREAMBLE, HEAD, DATA, EPILOGUE };

struct mk_multipart {
    struct mk_multipart_limits limits;
    const struct mk_multipart_ops *ops;
    void *ctx;
    enum state state;
    int error;
    const char *error_text; /* describes the error; NULL: no error, or a function in `ops` failed */
    size_t n_parts;
    uint64_t total, of_part, part_max;
    bool is_file;
    uint64_t used; /* bytes removed from the buffer, including the CR LF that mk_multipart_new() adds before
                    * the body */
    size_t len;    /* unprocessed bytes in the buffer */
    char mark[MARK_MAX]; /* CR LF - - boundary */
    size_t mark_len;
    char buf[BUF_SIZE];
};

struct mk_multipart_limits mk_multipart_limits_of(const struct mk_multipart_limits *given)
{
    static const struct mk_multipart_limits none;
    struct mk_multipart_limits l = given ? *given : none;
    l.size = l.size ? l.size : SIZE_DEFAULT;
    l.file = l.file ? l.file : FILE_DEFAULT;
    l.value = l.value ? l.value : VALUE_DEFAULT;
    l.parts = l.parts ? l.parts : PARTS_DEFAULT;
    l.head = l.head ? l.head : HEAD_DEFAULT;
    l.head = l.head < MK_PART_HEAD_MAX ? l.head : MK_PART_HEAD_MAX;
    l.name = l.name ? l.name : NAME_DEFAULT;
    return l;
}

struct mk_multipart *mk_multipart_new(mk_str boundary, const struct mk_multipart_limits *limits,
                                      const struct mk_multipart_ops *ops, void *ctx)
{
    bool is_valid = boundary.len && boundary.len <= MK_BOUNDARY_MAX;
    struct mk_multipart *m = is_valid ? mk_mem_zalloc(1, sizeof *m) : NULL;
    if (!m)
        return NULL;
    m->limits = mk_multipart_limits_of(limits);
    m->ops = ops;
    m->ctx = ctx;
    memcpy(m->mark, "\r\n--", 4);
    memcpy(m->mark + 4, boundary.p, boundary.len);
    m->mark_len = boundary.len + 4;
    memcpy(m->buf, "\r\n", 2); /* added, because the first boundary has no line ending before it */
    m->len = 2;
    return m;
}

void mk_multipart_free(struct mk_multipart *m)
{
    mk_mem_free(m);
}

static void consume_input(struct mk_multipart *m, size_t n)
{
    m->used += n;
    m->len -= n;
    memmove(m->buf, m->buf + n, m->len);
}

uint64_t mk_multipart_offset(const struct mk_multipart *m)
{
    return m->used - 2;
}

static int fail_with_reason(struct mk_multipart *m, int error, const char *message)
{
    m->error_text = message;
    return error;
}

static int deliver_part_data(struct mk_multipart *m, size_t n)
{
    if (m->state != DATA || n == 0)
        return 0;
    m->of_part += n;
    if (m->of_part > m->part_max)
        return fail_with_reason(m, -EMSGSIZE,
                                m->is_file ? "the file exceeds `.file` of the struct mk_multipart_limits"
                                           : "the value exceeds `.value` of the struct mk_multipart_limits");
    return m->ops->data(m->ctx, mk_str_of(m->buf, n));
}

/* Returns the number of bytes at the end of the buffer that may be the beginning of a delimiter. These bytes
 * stay in the buffer. */
static size_t partial_boundary_len(const struct mk_multipart *m)
{
    size_t most = m->len < m->mark_len - 1 ? m->len : m->mark_len - 1;
    for (size_t n = most; n > 0; n--)
        if (memcmp(m->buf + m->len - n, m->mark, n) == 0)
            return n;
    return 0;
}

/* Parses the bytes after the delimiter, from `at` on. Returns 1 for a line ending, whose CR is at *end; 2
 * after the last boundary; 0 if the bytes are incomplete; or -1 if the boundary is only the beginning of a
 * longer text, which belongs to the body. */
static int parse_after_boundary(const struct mk_multipart *m, size_t at, size_t *end)
{
    mk_str rest = mk_str_skip(mk_str_of(m->buf, m->len), at);
    if (mk_str_starts(rest, MK_STR("--")))
        return 2;
    size_t i = 0;
    while (i < rest.len && i < PADDING_MAX && (rest.p[i] == ' ' || rest.p[i] == '\t'))
        i++;
    *end = at + i;
    rest = mk_str_skip(rest, i);
    if (mk_str_starts(rest, MK_STR("\r\n")))
        return 1;
    bool open = rest.len == 0 || (rest.len == 1 && (rest.p[0] == '\r' || (rest.p[0] == '-' && i == 0)));
    return open && i < PADDING_MAX ? 0 : -1;
}

static int end_part(struct mk_multipart *m, bool is_last)
{
    int e = m->state == DATA && m->ops->end ? m->ops->end(m->ctx) : 0;
    m->state = is_last ? EPILOGUE : HEAD;
    return e;
}

/* Processes body bytes up to the next delimiter. Returns 1 to continue with the rest of the buffer, 0 if more
 * data is needed, or an error. */
static int parse_part_body(struct mk_multipart *m)
{
    char *found = memmem(m->buf, m->len, m->mark, m->mark_len);
    if (!found) {
        size_t n = m->len - partial_boundary_len(m);
        int e = deliver_part_data(m, n);
        consume_input(m, n);
        return e;
    }
    size_t at = (size_t)(found - m->buf), end = 0;
    int boundary = parse_after_boundary(m, at + m->mark_len, &end);
    size_t content = boundary < 0 ? at + m->mark_len : at; /* not a boundary: the mark is body data */
    int e = deliver_part_data(m, content);
    if (e)
        return e;
    if (boundary > 0) {
        e = end_part(m, boundary == 2);
        content = boundary == 2 ? m->len : end;
    }
    consume_input(m, content);
    return e ? e : boundary != 0;
}

/* In the buffer, the headers of a part start with the CR LF that ends the boundary line, so empty headers
 * need no special case. */
static int parse_part_head(struct mk_multipart *m)
{
    char *end = memmem(m->buf, m->len, "\r\n\r\n", 4);
    size_t len = end ? (size_t)(end - m->buf) + 2 : m->len;
    if (len > m->limits.head + (end ? 4 : 5)) /* without `end`, three of its four bytes may have arrived */
        return fail_with_reason(m, -EMSGSIZE,
                                "the headers of a part exceed `.head` of the struct mk_multipart_limits");
    if (!end)
        return 0;
    if (++m->n_parts > m->limits.parts)
        return fail_with_reason(m, -EMSGSIZE,
                                "there are more parts than `.parts` of the struct mk_multipart_limits");
    struct mk_multipart_part part;
    int e = mk_multipart_header_parse(mk_str_of(m->buf + 2, len - 2), m->limits.name, &part, &m->error_text);
    if (!e) {
        m->error_text = NULL;
        e = m->ops->part(m->ctx, &part);
    }
    m->is_file = part.file_name.p;
    m->part_max = m->is_file ? m->limits.file : m->limits.value;
    m->of_part = 0;
    m->state = DATA;
    consume_input(m, len + 2);
    return e ? e : 1;
}

static int parse_buffered_input(struct mk_multipart *m)
{
    int e = 1;
    while (e > 0) {
        if (m->state == EPILOGUE) {
            m->len = 0;
            return 0;
        }
        e = m->state == HEAD ? parse_part_head(m) : parse_part_body(m);
    }
    return e;
}

int mk_multipart_feed(struct mk_multipart *m, mk_str bytes)
{
    if (m->error)
        return m->error;
    m->total += bytes.len;
    if (m->total > m->limits.size)
        m->error =
            fail_with_reason(m, -EMSGSIZE, "the content exceeds `.size` of the struct mk_multipart_limits");
    while (bytes.len && !m->error) {
        size_t n = BUF_SIZE - m->len < bytes.len ? BUF_SIZE - m->len : bytes.len;
        memcpy(m->buf + m->len, bytes.p, n);
        m->len += n;
        bytes = mk_str_skip(bytes, n);
        m->error = parse_buffered_input(m);
    }
    return m->error;
}

int mk_multipart_end(struct mk_multipart *m)
{
    static const char *const missing[] = {[PREAMBLE] = "the content has no boundary",
                                          [HEAD] = "the content ends in the headers of a part",
                                          [DATA] = "the content ends without a closing boundary"};
    if (!m->error && m->state != EPILOGUE)
        m->error = fail_with_reason(m, -EBADMSG, missing[m->state]);
    return m->error;
}

const char *mk_multipart_error(const struct mk_multipart *m, size_t *part)
{
    *part = m->n_parts;
    return m->error_text;
}
