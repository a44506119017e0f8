/* SPDX-License-Identifier: Apache-2.0 */
#include "table_writer.h"

#include <monkey/json.h>
#include <time.h>

#include "escape.h"

enum { LABEL_WIDTH = 16, CELL_MAX = 4096 };

/* ---- Around the cells ---- */

void cheetah_table_writer_begin(struct cheetah_table_writer *s)
{
    if (s->json && s->form == CHEETAH_TABLE)
        mk_buf_add(s->out, MK_STR("[\n"));
    if (s->json || s->form == CHEETAH_LIST)
        return;
    for (size_t i = 0; i < s->n; i++)
        mk_buf_addf(s->out, "%s%*s", i ? "  " : "", s->columns[i].width, s->columns[i].name);
    mk_buf_add_char(s->out, '\n');
}

void cheetah_table_writer_end(struct cheetah_table_writer *s)
{
    if (s->json && s->form == CHEETAH_TABLE)
        mk_buf_add(s->out, MK_STR("]\n"));
}

static void write_json_cell(struct cheetah_table_writer *s, mk_str json)
{
    struct mk_json_writer w = {.out = s->out, .comma = s->at > 0 || s->has_rows};
    if (s->at == 0)
        mk_json_begin_object(&w);
    mk_json_raw(mk_json_key(&w, s->columns[s->at].name), json);
    if (s->at + 1 == s->n) {
        mk_json_end_object(&w);
        mk_buf_add_char(s->out, '\n');
    }
}

/* Writes a cell of a human-readable, aligned table or list. */
static void write_text_cell(struct cheetah_table_writer *s, mk_str text)
{
    int width = s->form == CHEETAH_LIST ? 0 : s->columns[s->at].width;
    if (s->form == CHEETAH_LIST)
        mk_buf_addf(s->out, "%-*s", LABEL_WIDTH, s->columns[s->at].name);
    else if (s->at)
        mk_buf_add(s->out, MK_STR("  "));
    mk_buf_addf(s->out, "%*.*s", width, MK_STR_ARG(text));
    if (s->form == CHEETAH_LIST || s->at + 1 == s->n)
        mk_buf_add_char(s->out, '\n');
}

static void write_cell(struct cheetah_table_writer *s, mk_str json, mk_str text)
{
    if (s->json)
        write_json_cell(s, json);
    else
        write_text_cell(s, text);
    if (++s->at == s->n) {
        s->at = 0;
        s->has_rows = true;
    }
}

/* ---- Cells ---- */

void cheetah_table_cell_null(struct cheetah_table_writer *s)
{
    write_cell(s, MK_STR("null"), MK_STR("-"));
}

/* Writes a number; `text` is its human-readable form; NULL: the digits. */
static void write_number_cell(struct cheetah_table_writer *s, uint64_t n, const struct mk_buf *text)
{
    char room[24];
    struct mk_buf digits = mk_buf_fixed(room, sizeof room);
    mk_buf_add_num(&digits, n);
    write_cell(s, mk_buf_str(&digits), text ? mk_buf_str(text) : mk_buf_str(&digits));
}

void cheetah_table_cell_num(struct cheetah_table_writer *s, uint64_t n)
{
    write_number_cell(s, n, NULL);
}

void cheetah_table_cell_bool(struct cheetah_table_writer *s, bool yes)
{
    write_cell(s, yes ? MK_STR("true") : MK_STR("false"), yes ? MK_STR("yes") : MK_STR("no"));
}

static void append_json_string(struct mk_buf *out, mk_str text)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_string(&w, text);
}

/* Escapes the text now, because escaping the finished JSON would damage it. */
static void append_safe_json_string(struct mk_buf *out, mk_str text)
{
    struct mk_buf safe = mk_buf_growing(CELL_MAX);
    append_json_string(out, text);
    cheetah_escape_append(&safe, mk_buf_str(out));
    if (!mk_str_eq(mk_buf_str(&safe), mk_buf_str(out))) {
        mk_buf_clear(&safe);
        mk_buf_clear(out);
        cheetah_escape_append(&safe, text);
        append_json_string(out, mk_buf_str(&safe));
    }
    out->failed |= safe.failed;
    mk_buf_free(&safe);
}

void cheetah_table_cell_text(struct cheetah_table_writer *s, mk_str text)
{
    struct mk_buf room = mk_buf_growing(CELL_MAX);
    if (s->json)
        append_safe_json_string(&room, text);
    else
        mk_log_escape(&room, text);
    if (room.failed)
        cheetah_table_cell_null(s);
    else
        write_cell(s, mk_buf_str(&room), mk_buf_str(&room));
    mk_buf_free(&room);
}

void cheetah_table_cell_bytes(struct cheetah_table_writer *s, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    char room[32];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    uint64_t tenths = bytes;
    unsigned unit = 0;
    if (bytes < 1024) {
        write_number_cell(s, bytes, NULL);
        return;
    }
    for (tenths = bytes / 1024 * 10 + bytes % 1024 * 10 / 1024; tenths >= 10240; tenths /= 1024)
        unit++;
    mk_buf_addf(&text, "%llu.%llu%c", (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10),
                units[unit]);
    write_number_cell(s, bytes, &text);
}

void cheetah_table_cell_time(struct cheetah_table_writer *s, int64_t time)
{
    char room[32];
    struct tm tm;
    time_t t = (time_t)time;
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    if (time > 0 && localtime_r(&t, &tm))
        text.len = strftime(room, sizeof room, "%Y-%m-%d %H:%M:%S", &tm);
    write_number_cell(s, time > 0 ? (uint64_t)time : 0, &text);
}

void cheetah_append_duration(struct mk_buf *out, uint64_t seconds)
{
    if (seconds >= 86400)
        mk_buf_addf(out, "%llud ", (unsigned long long)(seconds / 86400));
    if (seconds >= 3600)
        mk_buf_addf(out, "%uh ", (unsigned)(seconds / 3600 % 24));
    if (seconds >= 60)
        mk_buf_addf(out, "%um ", (unsigned)(seconds / 60 % 60));
    mk_buf_addf(out, "%us", (unsigned)(seconds % 60));
}

void cheetah_table_cell_seconds(struct cheetah_table_writer *s, uint64_t seconds)
{
    char room[48];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    cheetah_append_duration(&text, seconds);
    write_number_cell(s, seconds, &text);
}

void cheetah_table_cell_ms(struct cheetah_table_writer *s, uint64_t ms)
{
    char room[32];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    mk_buf_addf(&text, "%llu.%03us", (unsigned long long)(ms / 1000), (unsigned)(ms % 1000));
    write_number_cell(s, ms, &text);
}

void cheetah_table_cell_us(struct cheetah_table_writer *s, uint64_t us)
{
    char room[32];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    if (us < 1000000)
        mk_buf_addf(&text, "%u.%03ums", (unsigned)(us / 1000), (unsigned)(us % 1000));
    else
        mk_buf_addf(&text, "%llu.%03us", (unsigned long long)(us / 1000000), (unsigned)(us / 1000 % 1000));
    write_number_cell(s, us, &text);
}
