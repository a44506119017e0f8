/* SPDX-License-Identifier: Apache-2.0 */
/* {"path": ..., "sort": ..., "order": ..., "entries": [{"name": ..., "url": ..., "type": ..., ...}, ...]} */
#include <monkey/text.h>

#include "listing.h"

static void write_head(const struct listing *l, struct mk_buf *out)
{
    enum sort_key order = dirlisting_listing_sort_key(l);
    mk_buf_add(out, MK_STR("{\"path\":"));
    mk_json_quote(out, l->path);
    mk_buf_addf(out, ",\"sort\":\"%s\"", dirlisting_sort_words[order]);
    if (order != SORT_NONE)
        mk_buf_addf(out, ",\"order\":\"%s\"", l->wish.down ? "desc" : "asc");
    mk_buf_add(out, MK_STR(",\"entries\":["));
}

static void write_entry(const struct listing *l, const struct entry *e, struct mk_buf *out)
{
    bool is_folder = e->kind == ENTRY_FOLDER;
    mk_buf_add(out, l->n_shown ? MK_STR(",\n{\"name\":") : MK_STR("\n{\"name\":"));
    mk_json_quote(out, e->name);
    mk_buf_add(out, MK_STR(",\"url\":\"")); /* the exact bytes of the name */
    mk_url_escape(out, e->name);
    mk_buf_add(out, is_folder ? MK_STR("/\",\"type\":\"folder\"") : MK_STR("\",\"type\":\"file\",\"size\":"));
    if (!is_folder)
        mk_buf_add_num(out, (uint64_t)e->size);
    mk_buf_add(out, MK_STR(",\"modified\":\""));
    dirlisting_write_time(out, e->mtime, false);
    mk_buf_add(out, MK_STR("\"}"));
}

static void write_foot(const struct listing *l, struct mk_buf *out)
{
    mk_buf_add(out, l->n_shown ? MK_STR("\n]}\n") : MK_STR("]}\n"));
}

const struct format dirlisting_format_json = {
    .word = "json",
    .type = MK_STR_INIT("application/json"),
    .content_type = MK_STR_INIT("application/json"),
    .write_head = write_head,
    .entry = write_entry,
    .write_foot = write_foot,
};
