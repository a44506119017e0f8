/* SPDX-License-Identifier: Apache-2.0 */
/* HPACK: decodes with libnghttp2, which no other file uses; encodes without a library. */
#include "http2frame/hpack.h"

#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "base/num.h"
#include "http/scan.h"

/* ---- Decoding ---- */

static void *nghttp2_alloc(size_t size, void *unused)
{
    (void)unused;
    return mk_mem_alloc(size);
}

static void *nghttp2_zalloc(size_t n, size_t size, void *unused)
{
    (void)unused;
    return mk_mem_zalloc(n, size);
}

static void *nghttp2_resize(void *old, size_t size, void *unused)
{
    (void)unused;
    return mk_mem_realloc(old, size);
}

static void nghttp2_release(void *p, void *unused)
{
    (void)unused;
    mk_mem_free(p);
}

/* Decoders keep a pointer to this struct. */
static nghttp2_mem heap = {
    .malloc = nghttp2_alloc, .free = nghttp2_release, .calloc = nghttp2_zalloc, .realloc = nghttp2_resize};

/* An mk_hpack_decoder is the library's inflater. */
static nghttp2_hd_inflater *inflater_of(struct mk_hpack_decoder *h)
{
    return (nghttp2_hd_inflater *)h;
}

const char mk_hpack_library[] = "nghttp2 " NGHTTP2_VERSION;

/* Keeps the library's default table limit of 4096 bytes, which peers assume unless our SETTINGS announce
 * another size. */
struct mk_hpack_decoder *mk_hpack_decoder_new(void)
{
    nghttp2_hd_inflater *inflater;
    return nghttp2_hd_inflate_new2(&inflater, &heap) ? NULL : (struct mk_hpack_decoder *)inflater;
}

void mk_hpack_decoder_free(struct mk_hpack_decoder *h)
{
    if (h)
        nghttp2_hd_inflate_del(inflater_of(h));
}

static mk_str str_of_bytes(const uint8_t *p, size_t len)
{
    return mk_str_of((const char *)p, len);
}

mk_err mk_hpack_decode(struct mk_hpack_decoder *h, mk_str block, mk_hpack_on_header *on_field, void *ctx)
{
    const uint8_t *at = (const uint8_t *)(block.p ? block.p : "");
    size_t left = block.len;
    bool is_wanted = true;
    for (int flags = 0; !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
        nghttp2_nv field;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater_of(h), &field, &flags, at, left, 1);
        if (used < 0)
            return used == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EBADMSG;
        at += used;
        left -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT && is_wanted)
            is_wanted = !on_field(ctx, str_of_bytes(field.name, field.namelen),
                                  str_of_bytes(field.value, field.valuelen));
    }
    nghttp2_hd_inflate_end_headers(inflater_of(h));
    return is_wanted ? 0 : -ECANCELED;
}

/* ---- Encoding ---- */

enum { NAME_MAX_LEN = 27, N_SLOTS = 128 };

/* Header representations (RFC 7541, section 6) and the number of index bits in their first byte. */
enum {
    INDEXED = 0x80,
    PLAIN = 0x00,
    NEVER_INDEXED = 0x10,
    LITERAL_BITS = 4,
    LENGTH_BITS = 7,
    NIBBLE = 15,
};

/* clang-format off */
/* The static table (RFC 7541, appendix A): its names, each at its first index. Contains no pointers, which
 * would need relocations in a position-independent program. */
#define NAME(text) {sizeof(text) - 1, text}
/* clang-format on */
static const struct name {
    uint8_t len;
    char text[NAME_MAX_LEN + 1];
} names[] = {
    [1] = NAME(":authority"),
    [2] = NAME(":method"),
    [4] = NAME(":path"),
    [6] = NAME(":scheme"),
    [8] = NAME(":status"),
    [15] = NAME("accept-charset"),
    [16] = NAME("accept-encoding"),
    [17] = NAME("accept-language"),
    [18] = NAME("accept-ranges"),
    [19] = NAME("accept"),
    [20] = NAME("access-control-allow-origin"),
    [21] = NAME("age"),
    [22] = NAME("allow"),
    [23] = NAME("authorization"),
    [24] = NAME("cache-control"),
    [25] = NAME("content-disposition"),
    [26] = NAME("content-encoding"),
    [27] = NAME("content-language"),
    [28] = NAME("content-length"),
    [29] = NAME("content-location"),
    [30] = NAME("content-range"),
    [31] = NAME("content-type"),
    [32] = NAME("cookie"),
    [33] = NAME("date"),
    [34] = NAME("etag"),
    [35] = NAME("expect"),
    [36] = NAME("expires"),
    [37] = NAME("from"),
    [38] = NAME("host"),
    [39] = NAME("if-match"),
    [40] = NAME("if-modified-since"),
    [41] = NAME("if-none-match"),
    [42] = NAME("if-range"),
    [43] = NAME("if-unmodified-since"),
    [44] = NAME("last-modified"),
    [45] = NAME("link"),
    [46] = NAME("location"),
    [47] = NAME("max-forwards"),
    [48] = NAME("proxy-authenticate"),
    [49] = NAME("proxy-authorization"),
    [50] = NAME("range"),
    [51] = NAME("referer"),
    [52] = NAME("refresh"),
    [53] = NAME("retry-after"),
    [54] = NAME("server"),
    [55] = NAME("set-cookie"),
    [56] = NAME("strict-transport-security"),
    [57] = NAME("transfer-encoding"),
    [58] = NAME("user-agent"),
    [59] = NAME("vary"),
    [60] = NAME("via"),
    [61] = NAME("www-authenticate"),
};

/* The index in `names` for each value of name_slot(), which has no collisions. */
static const uint8_t slots[N_SLOTS] = {
    [0] = 16,   [2] = 50,   [4] = 36,  [7] = 51,   [8] = 57,   [10] = 17,  [11] = 33,  [12] = 29,  [13] = 24,
    [16] = 56,  [18] = 22,  [19] = 53, [21] = 25,  [23] = 23,  [27] = 44,  [29] = 45,  [36] = 28,  [37] = 42,
    [40] = 58,  [49] = 61,  [55] = 34, [56] = 6,   [57] = 52,  [58] = 54,  [60] = 35,  [61] = 48,  [62] = 18,
    [64] = 40,  [65] = 20,  [67] = 47, [70] = 43,  [71] = 55,  [79] = 37,  [83] = 49,  [86] = 39,  [88] = 38,
    [90] = 46,  [91] = 32,  [93] = 1,  [99] = 4,   [100] = 19, [101] = 41, [102] = 21, [104] = 60, [109] = 31,
    [111] = 26, [112] = 30, [114] = 8, [115] = 59, [121] = 27, [124] = 15, [125] = 2,
};

/* Hashes a name: length, first and last letter (case-insensitive) distinguish all names. */
static unsigned name_slot(mk_str name)
{
    unsigned first = name.p[0] & 31, last = name.p[name.len - 1] & 31;
    return (3 * (unsigned)name.len + 54 * first + 59 * last) % N_SLOTS;
}

/* Returns the first index of the name; 0: not in the table. */
static unsigned find_static_name(mk_str name)
{
    if (name.len == 0 || name.len > NAME_MAX_LEN)
        return 0;
    unsigned index = slots[name_slot(name)];
    bool is_it = names[index].len == name.len && mk_scan_is_header_name(name.p, names[index].text, name.len);
    return is_it ? index : 0;
}

/* Entries of the static table that have a value. */
static const struct row {
    uint8_t name, index;
    char value[14];
} rows[] = {
    {2, 2, "GET"},  {2, 3, "POST"},
    {4, 4, "/"},    {4, 5, "/index.html"},
    {6, 6, "http"}, {6, 7, "https"},
    {8, 8, "200"},  {8, 9, "204"},
    {8, 10, "206"}, {8, 11, "304"},
    {8, 12, "400"}, {8, 13, "404"},
    {8, 14, "500"}, {16, 16, "gzip, deflate"},
};

/* Returns the index of name and value, where `name` is the name's index; 0: no such row. */
static unsigned find_static_entry(unsigned name, mk_str value)
{
    bool has_values = (name >= 2 && name <= 8) || name == 16;
    if (!has_values)
        return value.len == 0 ? name : 0;
    for (size_t i = 0; i < MK_LEN(rows); i++)
        if (rows[i].name == name && mk_str_eq(mk_str_from_c(rows[i].value), value))
            return rows[i].index;
    return 0;
}

/* Writes an integer whose first `bits` bits share a byte with `kind` (RFC 7541, section 5.1). */
static char *put_integer(char *at, unsigned kind, unsigned bits, size_t n)
{
    size_t most = (1u << bits) - 1;
    if (n < most) {
        *at++ = (char)(kind | n);
        return at;
    }
    *at++ = (char)(kind | most);
    for (n -= most; n >= 0x80; n >>= 7)
        *at++ = (char)(0x80 | (n & 0x7f));
    *at++ = (char)n;
    return at;
}

static size_t integer_len(unsigned bits, size_t n)
{
    size_t most = (1u << bits) - 1, len = 1;
    if (n < most)
        return len;
    for (n -= most; n >= 0x80; n >>= 7)
        len++;
    return len + 1;
}

static char *put_lower(char *at, mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        *at++ = mk_char_lower(s.p[i]);
    return at;
}

static bool reserve_room(struct mk_buf *out, size_t len)
{
    return (!out->failed && out->cap - out->len >= len) || mk_buf_reserve(out, len);
}

static void put_value(struct mk_buf *out, char *at, mk_str value)
{
    if (value.len)
        memcpy(at, value.p, value.len);
    out->len = (size_t)(at - out->p) + value.len;
}

static void encode_literal(struct mk_buf *out, unsigned kind, unsigned index, mk_str name, mk_str value)
{
    size_t len = integer_len(LITERAL_BITS, index) + integer_len(LENGTH_BITS, value.len) + value.len;
    if (!index)
        len += integer_len(LENGTH_BITS, name.len) + name.len;
    if (!reserve_room(out, len))
        return;
    char *at = put_integer(out->p + out->len, kind, LITERAL_BITS, index);
    if (!index)
        at = put_lower(put_integer(at, 0, LENGTH_BITS, name.len), name);
    put_value(out, put_integer(at, 0, LENGTH_BITS, value.len), value);
}

/* Fast path for nearly all headers: a table index above 14, and a one-byte length. */
static void encode_short_literal(struct mk_buf *out, unsigned index, mk_str value)
{
    if (!reserve_room(out, value.len + 3))
        return;
    char *at = out->p + out->len;
    at[0] = PLAIN | NIBBLE;
    at[1] = (char)(index - NIBBLE);
    at[2] = (char)value.len;
    put_value(out, at + 3, value);
}

static void encode_indexed(struct mk_buf *out, unsigned index)
{
    mk_buf_add_char(out, (char)(INDEXED | index));
}

void mk_hpack_encode(struct mk_buf *out, mk_str name, mk_str value)
{
    unsigned index = find_static_name(name), row = index ? find_static_entry(index, value) : 0;
    if (row)
        encode_indexed(out, row);
    else if (index >= NIBBLE && value.len < 0x7f)
        encode_short_literal(out, index, value);
    else
        encode_literal(out, PLAIN, index, name, value);
}

void mk_hpack_encode_never_indexed(struct mk_buf *out, mk_str name, mk_str value)
{
    encode_literal(out, NEVER_INDEXED, find_static_name(name), name, value);
}

void mk_hpack_encode_num(struct mk_buf *out, mk_str name, uint64_t value)
{
    char digits[MK_NUM_MAX];
    mk_hpack_encode(out, name, mk_str_of(digits, mk_num_write(digits, value)));
}

void mk_hpack_encode_status(struct mk_buf *out, unsigned status)
{
    char digits[3];
    if (status == 200) {
        encode_indexed(out, 8);
        return;
    }
    mk_num_write_padded(digits, status, sizeof digits);
    mk_hpack_encode(out, MK_STR(":status"), mk_str_of(digits, sizeof digits));
}
