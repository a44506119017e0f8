/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON format: {"path": ..., "sort": ..., "order": ..., "entries": [{"name": ..., "url": ..., ...},
 * ...]} */
#include <monkey/json.h>
#include <monkey/text.h>

#include "listing.h"

static void write_head(const struct listing *l, struct mk_buf *out)
{
    enum sort_key order = dirlisting_listing_sort_key(l);
    struct mk_json_writer w = mk_json_writer_to(out);
    mk_json_begin_object(&w);
    mk_json_string(mk_json_key(&w, "path"), l->path);
    mk_json_cstr(mk_json_key(&w, "sort"), dirlisting_sort_words[order]);
    if (order != SORT_NONE)
        mk_json_cstr(mk_json_key(&w, "order"), l->options.down ? "desc" : "asc");
    mk_json_begin_array(mk_json_key(&w, "entries"));
}

static void write_entry(const struct listing *l, const struct entry *e, struct mk_buf *out)
{
    bool is_folder = e->kind == ENTRY_FOLDER;
    struct mk_json_writer w = {.out = out, .comma = l->n_shown > 0};
    mk_json_newline(&w);
    mk_json_begin_object(&w);
    mk_json_string(mk_json_key(&w, "name"), e->name);
    mk_json_begin_string(mk_json_key(&w, "url")); /* the URL encodes the exact bytes of the name */
    mk_url_escape(out, e->name);
    if (is_folder)
        mk_buf_add_char(out, '/');
    mk_json_end_string(&w);
    mk_json_cstr(mk_json_key(&w, "type"), is_folder ? "folder" : "file");
    if (!is_folder)
        mk_json_uint(mk_json_key(&w, "size"), (uint64_t)e->size);
    mk_json_begin_string(mk_json_key(&w, "modified"));
    dirlisting_write_time(out, e->mtime, false);
    mk_json_end_string(&w);
    mk_json_end_object(&w);
}

static void write_foot(const struct listing *l, struct mk_buf *out)
{
    struct mk_json_writer w = mk_json_writer_to(out);
    if (l->n_shown)
        mk_buf_add_char(out, '\n');
    mk_json_end_array(&w);
    mk_json_end_object(&w);
    mk_buf_add_char(out, '\n');
}

const struct format dirlisting_format_json = {
    .word = "json",
    .type = MK_STR_INIT("application/json"),
    .content_type = MK_STR_INIT("application/json"),
    .write_head = write_head,
    .entry = write_entry,
    .write_foot = write_foot,
};
