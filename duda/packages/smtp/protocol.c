/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol.h"

#include <errno.h>
#include <monkey/text.h>

/* ---- Replies (RFC 5321, section 4.2) ---- */

static bool is_reply_code(mk_str s)
{
    return s.len >= 3 && s.p[0] >= '2' && s.p[0] <= '5' && mk_char_is_digit(s.p[1]) &&
           mk_char_is_digit(s.p[2]);
}

/* Returns the length of one line with its line ending, 0 if it is incomplete, or -EPROTO. */
static ssize_t parse_reply_line(mk_str text, unsigned *code, bool *is_last)
{
    size_t end = mk_str_find(mk_str_first(text, text.len < SMTP_LINE_MAX ? text.len : SMTP_LINE_MAX), '\n');
    mk_str line = mk_str_first(text, end == MK_STR_NONE ? text.len : end);
    if (end == MK_STR_NONE)
        return text.len < SMTP_LINE_MAX ? 0 : -EPROTO;
    if (mk_str_ends(line, MK_STR("\r")))
        line.len--;
    if (!is_reply_code(line) || (line.len > 3 && line.p[3] != ' ' && line.p[3] != '-'))
        return -EPROTO;
    *code =
        (unsigned)(line.p[0] - '0') * 100 + (unsigned)(line.p[1] - '0') * 10 + (unsigned)(line.p[2] - '0');
    *is_last = line.len == 3 || line.p[3] == ' ';
    return (ssize_t)end + 1;
}

ssize_t smtp_reply_parse(mk_str text, struct smtp_reply *out)
{
    size_t len = 0;
    bool is_last = false;
    for (unsigned i = 0; !is_last; i++) {
        unsigned code = 0;
        ssize_t n = i < SMTP_LINES_MAX ? parse_reply_line(mk_str_skip(text, len), &code, &is_last) : -EPROTO;
        if (n <= 0)
            return n;
        if (i && code != out->code)
            return -EPROTO;
        out->code = code;
        len += (size_t)n;
    }
    out->lines = mk_str_first(text, len);
    return (ssize_t)len;
}

/* Gets the text of the next line, without the code and the line ending. Returns false if there are no more
 * lines. Initially, *rest is reply.lines. */
static bool next_reply_line(mk_str *rest, mk_str *line)
{
    if (!rest->len)
        return false;
    *line = mk_str_cut(rest, '\n');
    if (mk_str_ends(*line, MK_STR("\r")))
        line->len--;
    *line = line->len > 4 ? mk_str_skip(*line, 4) : MK_STR("");
    return true;
}

void smtp_reply_format_printable(struct mk_buf *out, const struct smtp_reply *reply)
{
    mk_str rest = reply->lines, line;
    bool is_first = true;
    while (next_reply_line(&rest, &line)) {
        if (!is_first && line.len)
            mk_buf_add_char(out, ' ');
        mk_log_escape(out, line);
        is_first = false;
    }
}

static bool has_word(mk_str words, mk_str expected)
{
    mk_str word;
    while ((word = mk_str_word(&words)).len)
        if (mk_str_eq_nocase(word, expected))
            return true;
    return false;
}

static uint64_t parse_number(mk_str s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!mk_char_is_digit(s.p[i]) || n > UINT64_MAX / 10 - 10)
            return 0;
        n = n * 10 + (uint64_t)(s.p[i] - '0');
    }
    return n;
}

struct smtp_extensions smtp_extensions_parse(const struct smtp_reply *reply)
{
    struct smtp_extensions x = {.has_size = false};
    mk_str rest = reply->lines, line;
    bool is_first = true; /* the first line contains the name of the server */
    for (; next_reply_line(&rest, &line); is_first = false) {
        mk_str word = mk_str_word(&line);
        if (is_first)
            continue;
        if (mk_str_eq_nocase(word, MK_STR("8BITMIME")))
            x.has_8bitmime = true;
        else if (mk_str_eq_nocase(word, MK_STR("AUTH")))
            x.auth_plain = x.auth_plain || has_word(line, MK_STR("PLAIN"));
        else if (mk_str_eq_nocase(word, MK_STR("SIZE"))) {
            x.has_size = true;
            x.size_max = parse_number(mk_str_word(&line));
        }
    }
    return x;
}

/* ---- Messages ---- */

bool smtp_is_8bit(mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] >= 0x80)
            return true;
    return false;
}

/* Cuts the next line off. LF, CR LF and a bare CR end it, because servers differ in how they treat a bare
 * CR. */
static mk_str cut_message_line(mk_str *text)
{
    size_t n = 0;
    while (n < text->len && text->p[n] != '\n' && text->p[n] != '\r')
        n++;
    mk_str line = mk_str_first(*text, n);
    size_t end = n + (n < text->len);
    end += n + 1 < text->len && text->p[n] == '\r' && text->p[n + 1] == '\n';
    *text = mk_str_skip(*text, end);
    return line;
}

int smtp_data_format(struct mk_buf *out, mk_str text)
{
    while (text.len) {
        mk_str line = cut_message_line(&text);
        if (line.len > SMTP_TEXT_LINE_MAX || (line.len && memchr(line.p, 0, line.len)))
            return -EINVAL;
        if (line.len && line.p[0] == '.')
            mk_buf_add_char(out, '.');
        mk_buf_add(out, line);
        mk_buf_add(out, MK_STR("\r\n"));
    }
    mk_buf_add(out, MK_STR(".\r\n"));
    return out->failed ? -ENOMEM : 0;
}
