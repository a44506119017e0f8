/* SPDX-License-Identifier: Apache-2.0 */
/* State machine: each byte leads to the next state, or to BAD if the byte is not allowed. Chunk data bypasses
 * the machine. */
#include "http/chunked.h"

#include "base/num.h"
#include "http/scan.h"

enum { DIGITS_MAX = 16, LINE_FREE = 16 };

enum state {
    BAD,
    SIZE_FIRST,    /* before the first digit */
    SIZE,          /* after a digit */
    EXT_SEMICOLON, /* white space before ';' */
    EXT_NAME_FIRST,
    EXT_NAME,
    EXT_NAME_BLANK,
    EXT_VALUE_FIRST,
    EXT_VALUE,
    EXT_QUOTED,
    EXT_ESCAPED,
    EXT_VALUE_END, /* after the closing quote */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST, /* at the beginning of a trailer line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    END,
};

void mk_chunked_init(struct mk_chunked *c, size_t trailers_max)
{
    *c = (struct mk_chunked){.overhead_max = trailers_max, .state = SIZE_FIRST};
}

void mk_chunked_init_allow_padding(struct mk_chunked *c, size_t trailers_max)
{
    mk_chunked_init(c, trailers_max);
    c->allows_padding = true;
}

static int set_failed(struct mk_chunked *c, int status)
{
    c->failed = (int16_t)-status;
    return -status;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns the state after `c`, which follows the size or a complete extension; `blanks`: the state after
 * white space. */
static enum state state_after_size_or_extension(char c, enum state blanks)
{
    return c == '\r' ? SIZE_LF : c == ';' ? EXT_NAME_FIRST : is_blank(c) ? blanks : BAD;
}

static enum state next_extension_state(enum state state, char c)
{
    bool token = mk_scan_is(c, MK_SCAN_TOKEN);
    switch ((int)state) {
    case EXT_SEMICOLON:
        return is_blank(c) ? EXT_SEMICOLON : c == ';' ? EXT_NAME_FIRST : BAD;
    case EXT_NAME_FIRST:
        return token ? EXT_NAME : is_blank(c) ? EXT_NAME_FIRST : BAD;
    case EXT_NAME:
        return token      ? EXT_NAME
               : c == '=' ? EXT_VALUE_FIRST
                          : state_after_size_or_extension(c, EXT_NAME_BLANK);
    case EXT_NAME_BLANK:
        return is_blank(c) ? EXT_NAME_BLANK : c == '=' ? EXT_VALUE_FIRST : c == ';' ? EXT_NAME_FIRST : BAD;
    case EXT_VALUE_FIRST:
        return token ? EXT_VALUE : c == '"' ? EXT_QUOTED : is_blank(c) ? EXT_VALUE_FIRST : BAD;
    case EXT_VALUE:
        return token ? EXT_VALUE : state_after_size_or_extension(c, EXT_SEMICOLON);
    case EXT_QUOTED:
        return c == '"'                        ? EXT_VALUE_END
               : c == '\\'                     ? EXT_ESCAPED
               : mk_scan_is(c, MK_SCAN_QUOTED) ? EXT_QUOTED
                                               : BAD;
    case EXT_ESCAPED:
        return mk_scan_is(c, MK_SCAN_VALUE) ? EXT_QUOTED : BAD;
    default: /* EXT_VALUE_END */
        return state_after_size_or_extension(c, EXT_SEMICOLON);
    }
}

static enum state next_trailer_state(enum state state, char c)
{
    switch ((int)state) {
    case TRAILER_FIRST:
        return c == '\r' ? END_LF : mk_scan_is(c, MK_SCAN_TOKEN) ? TRAILER_NAME : BAD;
    case TRAILER_NAME:
        return c == ':' ? TRAILER_VALUE : mk_scan_is(c, MK_SCAN_TOKEN) ? TRAILER_NAME : BAD;
    case TRAILER_VALUE:
        return c == '\r' ? TRAILER_LF : mk_scan_is(c, MK_SCAN_VALUE) ? TRAILER_VALUE : BAD;
    case TRAILER_LF:
        return c == '\n' ? TRAILER_FIRST : BAD;
    default: /* END_LF */
        return c == '\n' ? END : BAD;
    }
}

/* Extensions are limited in proportion to the data: LINE_FREE bytes per size line, plus half the size of its
 * chunk, do not count. Only the excess accumulates, for example if one-byte chunks have long size lines. */
static void subtract_free_overhead(struct mk_chunked *c)
{
    uint64_t paid = LINE_FREE + c->left / 2;
    c->overhead -= c->overhead < paid ? c->overhead : (size_t)paid;
}

static int end_size_line(struct mk_chunked *c)
{
    uint64_t total;
    if (!mk_num_add(c->total, c->left, &total))
        return set_failed(c, 413);
    c->total = total;
    subtract_free_overhead(c);
    c->digits = 0;
    if (c->left) {
        c->state = DATA;
        return 0;
    }
    c->state = TRAILER_FIRST;
    c->overhead = 0;
    return 0;
}

static int parse_size_byte(struct mk_chunked *c, char byte)
{
    int digit = mk_char_hex(byte);
    if (digit < 0) {
        c->state = (uint8_t)(c->state == SIZE ? state_after_size_or_extension(byte, EXT_SEMICOLON) : BAD);
        return c->state == BAD ? set_failed(c, 400) : 0;
    }
    if (c->digits == DIGITS_MAX)
        return set_failed(c, 413);
    c->digits++;
    c->left = c->left << 4 | (unsigned)digit;
    c->state = SIZE;
    return 0;
}

/* Is the byte that leads to this state part of an extension or a trailer? */
static bool is_overhead_state(enum state state)
{
    return (state >= EXT_SEMICOLON && state <= EXT_VALUE_END) ||
           (state >= TRAILER_FIRST && state <= TRAILER_LF);
}

static int parse_framing_byte(struct mk_chunked *c, char byte)
{
    enum state state = (enum state)c->state;
    if (state <= SIZE)
        return parse_size_byte(c, byte);
    if (state == SIZE_LF && byte == '\n')
        return end_size_line(c);
    if (state == DATA_CR)
        state = byte == '\r' ? DATA_LF : BAD;
    else if (state == DATA_LF)
        state = byte == '\n' ? SIZE_FIRST : BAD;
    else if (state >= TRAILER_FIRST)
        state = next_trailer_state(state, byte);
    else if (c->allows_padding && byte == '\r' && (state == EXT_SEMICOLON || state == EXT_NAME_BLANK))
        state = SIZE_LF;
    else
        state = state == SIZE_LF ? BAD : next_extension_state(state, byte);
    c->state = (uint8_t)state;
    if (state == BAD)
        return set_failed(c, 400);
    if (is_overhead_state(state) && ++c->overhead > c->overhead_max)
        return set_failed(c, 431);
    return 0;
}

static int read_data(struct mk_chunked *c, mk_str *in, mk_str *data)
{
    *data = mk_str_first(*in, c->left < in->len ? (size_t)c->left : in->len);
    *in = mk_str_skip(*in, data->len);
    c->left -= data->len;
    if (c->left == 0)
        c->state = DATA_CR;
    return MK_CHUNKED_DATA;
}

/* Is the next byte part of a trailer, and not of the final empty line? */
static bool is_trailer_byte(const struct mk_chunked *c, char byte)
{
    return (c->state == TRAILER_FIRST && byte != '\r') ||
           (c->state > TRAILER_FIRST && c->state <= TRAILER_LF);
}

static int read_trailers(struct mk_chunked *c, mk_str *in, mk_str *data)
{
    mk_str from = *in;
    while (in->len && is_trailer_byte(c, in->p[0])) {
        int r = parse_framing_byte(c, in->p[0]);
        if (r < 0)
            return r;
        *in = mk_str_skip(*in, 1);
    }
    *data = mk_str_first(from, from.len - in->len);
    return MK_CHUNKED_TRAILERS;
}

int mk_chunked_decode(struct mk_chunked *c, mk_str *in, mk_str *data)
{
    if (c->failed)
        return c->failed;
    while (c->state != END) {
        if (in->len == 0)
            return MK_CHUNKED_MORE;
        if (c->state == DATA)
            return read_data(c, in, data);
        if (is_trailer_byte(c, in->p[0]))
            return read_trailers(c, in, data);
        int r = parse_framing_byte(c, in->p[0]);
        if (r < 0)
            return r;
        *in = mk_str_skip(*in, 1);
    }
    return MK_CHUNKED_END;
}
