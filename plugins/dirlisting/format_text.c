/* SPDX-License-Identifier: Apache-2.0 */
/* The text format, with one line for each entry: time, size (`-` for a folder) and name, for terminals and
 * scripts. */
#include "listing.h"

static void write_head(const struct listing *l, struct mk_buf *out)
{
    if (l->is_large)
        mk_buf_add(out, MK_STR("# too many entries to sort: entries are in file system order\n"));
}

/* Doubles backslashes, so that scripts can restore each name from its line. */
static void write_escaped_name(struct mk_buf *out, mk_str part)
{
    while (part.p) {
        mk_buf_add(out, mk_str_cut(&part, '\\'));
        if (part.p)
            mk_buf_add(out, MK_STR("\\\\"));
    }
}

static void write_entry(const struct listing *l, const struct entry *e, struct mk_buf *out)
{
    size_t before = out->len;
    (void)l;
    dirlisting_write_time(out, e->mtime, false);
    if (out->len == before)
        mk_buf_add_char(out, '-');
    if (e->kind == ENTRY_FOLDER)
        mk_buf_addf(out, " %12s ", "-");
    else
        mk_buf_addf(out, " %12llu ", (unsigned long long)e->size);
    dirlisting_write_name(out, e->name, write_escaped_name);
    mk_buf_add(out, e->kind == ENTRY_FOLDER ? MK_STR("/\n") : MK_STR("\n"));
}

static void write_foot(const struct listing *l, struct mk_buf *out)
{
    (void)l;
    (void)out;
}

const struct format dirlisting_format_text = {
    .word = "text",
    .type = MK_STR_INIT("text/plain"),
    .content_type = MK_STR_INIT("text/plain; charset=utf-8"),
    .write_head = write_head,
    .entry = write_entry,
    .write_foot = write_foot,
};
