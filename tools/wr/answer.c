/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/answer.h"

void wr_answer_init(struct wr_answer *a)
{
    *a = (struct wr_answer){.at = WR_ANSWER_STATUS_LINE};
    mk_sha1_init(&a->sum);
}

static void break_off(struct wr_answer *a, const char *why)
{
    a->at = WR_ANSWER_BROKEN;
    a->why = why;
}

static void finish(struct wr_answer *a)
{
    a->at = WR_ANSWER_DONE;
    mk_sha1_end(&a->sum, a->sha1);
}

static void on_status_line(struct wr_answer *a, mk_str line)
{
    uint64_t status;
    mk_str version = mk_str_word(&line);
    if (!mk_str_starts(version, MK_STR("HTTP/1.")) || !mk_num_parse(mk_str_word(&line), &status) ||
        status < 100 || status > 999)
        break_off(a, "it is no answer of HTTP/1.1");
    else
        a->status = (unsigned)status;
    a->at = a->at == WR_ANSWER_BROKEN ? a->at : WR_ANSWER_FIELDS;
    a->has_length = a->is_chunked = false;
}

static void on_field(struct wr_answer *a, mk_str line)
{
    size_t colon = mk_str_find(line, ':');
    mk_str name = mk_str_take(line, colon), value = mk_str_trim(mk_str_skip(line, name.len + 1));
    if (colon == MK_STR_NONE)
        break_off(a, "its head has a line without a colon");
    else if (mk_str_eq_nocase(name, MK_STR("content-length"))) {
        a->has_length = mk_num_parse(value, &a->left);
        if (!a->has_length)
            break_off(a, "its Content-Length is no number");
    } else if (mk_str_eq_nocase(name, MK_STR("transfer-encoding"))) {
        a->is_chunked = mk_str_eq_nocase(value, MK_STR("chunked"));
        if (!a->is_chunked)
            break_off(a, "its Transfer-Encoding is not \"chunked\"");
    }
}

static void on_head_end(struct wr_answer *a)
{
    enum { NO_CONTENT = 204, NOT_MODIFIED = 304 };
    if (a->status < 200)
        a->at = WR_ANSWER_STATUS_LINE; /* the real one follows */
    else if (a->status == NO_CONTENT || a->status == NOT_MODIFIED)
        finish(a);
    else if (a->is_chunked)
        a->at = WR_ANSWER_CHUNK_SIZE;
    else if (!a->has_length)
        a->at = WR_ANSWER_UNTIL_END;
    else if (a->left == 0)
        finish(a);
    else
        a->at = WR_ANSWER_CONTENT;
}

static void on_chunk_size(struct wr_answer *a, mk_str line)
{
    mk_str size = mk_str_trim(mk_str_take(line, mk_str_find(line, ';')));
    a->left = 0;
    for (size_t i = 0; i < size.len; i++) {
        int digit = mk_char_hex(size.p[i]);
        if (digit < 0 || a->left >> 56) {
            break_off(a, "the size of a chunk is no number");
            return;
        }
        a->left = a->left << 4 | (unsigned)digit;
    }
    if (size.len == 0)
        break_off(a, "a chunk has no size");
    else
        a->at = a->left ? WR_ANSWER_CHUNK : WR_ANSWER_TRAILER;
}

static void on_line(struct wr_answer *a, mk_str line)
{
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    switch ((unsigned)a->at) {
    case WR_ANSWER_STATUS_LINE:
        on_status_line(a, line);
        break;
    case WR_ANSWER_FIELDS:
        if (line.len)
            on_field(a, line);
        else
            on_head_end(a);
        break;
    case WR_ANSWER_CHUNK_SIZE:
        on_chunk_size(a, line);
        break;
    case WR_ANSWER_CHUNK_END:
        if (line.len)
            break_off(a, "a chunk is longer than its size");
        else
            a->at = WR_ANSWER_CHUNK_SIZE;
        break;
    default:
        if (line.len == 0) /* the trailer's end */
            finish(a);
        break;
    }
}

static void take_line_byte(struct wr_answer *a, char c)
{
    a->head_len += a->at < WR_ANSWER_CONTENT || a->at == WR_ANSWER_TRAILER;
    if (a->line_len == sizeof a->line || a->head_len > WR_ANSWER_HEAD_MAX) {
        break_off(a, "its head is too long");
    } else if (c != '\n') {
        a->line[a->line_len++] = c;
    } else {
        mk_str line = mk_str_of(a->line, a->line_len);
        a->line_len = 0;
        on_line(a, line);
    }
}

static mk_str take_content(struct wr_answer *a, mk_str piece)
{
    mk_str part =
        a->at == WR_ANSWER_UNTIL_END || piece.len < a->left ? piece : mk_str_take(piece, (size_t)a->left);
    mk_sha1_add(&a->sum, part);
    a->length += part.len;
    if (a->at != WR_ANSWER_UNTIL_END && (a->left -= part.len) == 0) {
        if (a->at == WR_ANSWER_CHUNK)
            a->at = WR_ANSWER_CHUNK_END;
        else
            finish(a);
    }
    return mk_str_skip(piece, part.len);
}

bool wr_answer_feed(struct wr_answer *a, mk_str piece)
{
    while (piece.len && a->at != WR_ANSWER_DONE && a->at != WR_ANSWER_BROKEN) {
        if (a->at == WR_ANSWER_CONTENT || a->at == WR_ANSWER_UNTIL_END || a->at == WR_ANSWER_CHUNK) {
            piece = take_content(a, piece);
        } else {
            take_line_byte(a, piece.p[0]);
            piece = mk_str_skip(piece, 1);
        }
    }
    return a->at != WR_ANSWER_DONE && a->at != WR_ANSWER_BROKEN;
}

void wr_answer_end(struct wr_answer *a)
{
    if (a->at == WR_ANSWER_UNTIL_END)
        finish(a);
    else if (a->at == WR_ANSWER_STATUS_LINE && a->head_len == 0)
        break_off(a, "the server closed the connection without an answer");
    else if (a->at != WR_ANSWER_DONE && a->at != WR_ANSWER_BROKEN)
        break_off(a, "it ends too early");
}
