/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML format: a page without scripts. Links sort the columns, and a style sheet defines the theme. */
#include <monkey/text.h>

#include "listing.h"

enum { CRUMBS_MAX = 16 }; /* only this many folders at the end of a path become links */

static void write_text(struct mk_buf *out, mk_str name)
{
    dirlisting_write_name(out, name, mk_html_escape);
}

static size_t count_segments(mk_str path)
{
    size_t n = 0;
    for (mk_str rest = mk_str_skip(path, 1); mk_str_cut(&rest, '/').len;)
        n++;
    return n;
}

static void write_parent_path(struct mk_buf *out, size_t levels)
{
    mk_buf_add(out, MK_STR("<a href=\""));
    for (size_t i = 0; i < levels; i++)
        mk_buf_add(out, MK_STR("../"));
    mk_buf_add(out, levels ? MK_STR("\">") : MK_STR("./\" aria-current=\"page\">"));
}

/* Writes links to all parent folders. They are relative, so that they work if a proxy adds a prefix. */
static void write_breadcrumbs(const struct listing *l, struct mk_buf *out)
{
    size_t levels = count_segments(l->path);
    mk_str rest = mk_str_skip(l->path, 1);
    write_parent_path(out, levels);
    mk_buf_add(out, MK_STR("<span>/</span></a>"));
    while (levels-- > 0) {
        mk_str part = mk_str_cut(&rest, '/');
        if (levels == CRUMBS_MAX)
            mk_buf_add(out, MK_STR(" \xe2\x80\xa6/"));
        if (levels >= CRUMBS_MAX)
            continue;
        mk_buf_add(out, MK_STR(" "));
        write_parent_path(out, levels);
        mk_buf_add(out, MK_STR("<bdi>"));
        write_text(out, part);
        mk_buf_add(out, MK_STR("</bdi></a>/"));
    }
}

static void write_sort_query(const struct listing *l, struct mk_buf *out, enum sort_key key, bool down)
{
    mk_buf_addf(out, "?sort=%s&amp;order=%s", dirlisting_sort_words[key], down ? "desc" : "asc");
    if (l->options.has_format_query)
        mk_buf_add(out, MK_STR("&amp;format=html"));
}

/* Writes a column header: a link that sorts by the column, or reverses the order. */
static void write_column_header(const struct listing *l, struct mk_buf *out, enum sort_key key,
                                const char *name)
{
    bool is_sorted = dirlisting_listing_sort_key(l) == key,
         down = is_sorted ? !l->options.down : key != SORT_NAME;
    mk_buf_addf(out, "<th scope=\"col\" class=\"%s\"", dirlisting_sort_words[key]);
    if (is_sorted)
        mk_buf_addf(out, " aria-sort=\"%s\"", l->options.down ? "descending" : "ascending");
    mk_buf_add(out, MK_STR(">"));
    if (l->is_large) {
        mk_buf_addf(out, "%s</th>", name);
        return;
    }
    mk_buf_add(out, MK_STR("<a href=\""));
    write_sort_query(l, out, key, down);
    mk_buf_addf(out, "\">%s</a></th>", name);
}

static void write_head(const struct listing *l, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta name=\"color-scheme\" content=\"light dark\">\n<title>"));
    write_text(out, l->path);
    mk_buf_add(out, MK_STR("</title>\n"));
    mk_buf_add(out, l->settings->theme == THEME_PLAIN ? dirlisting_theme_plain : dirlisting_theme_guineo);
    mk_buf_add(out, MK_STR("</head>\n<body>\n<main>\n<h1><span>Index of </span>"));
    write_breadcrumbs(l, out);
    mk_buf_add(out, MK_STR("</h1>\n"));
    if (l->is_large)
        mk_buf_add(out, MK_STR("<p class=\"note\">This folder is too large to sort: entries are in file "
                               "system order.</p>\n"));
    if (l->options.note.len) {
        mk_buf_add(out, MK_STR("<p class=\"note\" role=\"alert\">"));
        mk_html_escape(out, l->options.note);
        mk_buf_add(out, MK_STR("</p>\n"));
    }
    if (l->options.has_form)
        mk_buf_add(
            out, MK_STR("<form method=\"post\" enctype=\"multipart/form-data\">"
                        "<label>Upload files: <input type=\"file\" name=\"file\" multiple required></label> "
                        "<button>Upload</button></form>\n"));
    mk_buf_add(out, MK_STR("<table>\n<thead><tr>"));
    write_column_header(l, out, SORT_NAME, "Name");
    write_column_header(l, out, SORT_SIZE, "Size");
    write_column_header(l, out, SORT_TIME, "Modified");
    mk_buf_add(out, MK_STR("</tr></thead>\n<tbody>\n"));
    if (l->path.len > 1)
        mk_buf_add(
            out,
            MK_STR(
                "<tr><td class=\"name up\"><a href=\"../\">Parent folder</a></td><td></td><td></td></tr>\n"));
}

/* Returns the CSS class of the icon before the name. */
static const char *entry_class(const struct listing *l, const struct entry *e)
{
    static const struct {
        mk_str type;
        const char *kind;
    } kinds[] = {
        {MK_STR_INIT("image/"), "image"},
        {MK_STR_INIT("audio/"), "audio"},
        {MK_STR_INIT("video/"), "video"},
        {MK_STR_INIT("application/zip"), "pack"},
        {MK_STR_INIT("application/gzip"), "pack"},
        {MK_STR_INIT("application/x-"), "pack"},
        {MK_STR_INIT("application/zstd"), "pack"},
        {MK_STR_INIT("application/vnd.rar"), "pack"},
        {MK_STR_INIT("application/java-archive"), "pack"},
    };
    if (e->kind == ENTRY_FOLDER)
        return "folder";
    mk_str type = mk_request_media_type(l->request, e->name);
    for (size_t i = 0; i < MK_LEN(kinds); i++)
        if (mk_str_starts(type, kinds[i].type))
            return kinds[i].kind;
    return "file";
}

static unsigned round_half_even(double n)
{
    unsigned below = (unsigned)n;
    double rest = n - below;
    return below + (rest > 0.5 || (rest == 0.5 && below % 2 != 0));
}

/* Writes a size such as "1.5 KB". */
static void write_size_with_unit(struct mk_buf *out, uint64_t size)
{
    static const char units[] = "KMGTPE";
    double n = (double)size;
    size_t unit = 0;
    if (size < 1024) {
        mk_buf_addf(out, "%u B", (unsigned)size);
        return;
    }
    for (n /= 1024; n >= 1023.5 && units[unit + 1]; n /= 1024)
        unit++;
    unsigned tenths =
        n < 9.95 ? round_half_even(n * 10) : 0; /* small builds cannot print floating-point numbers */
    if (tenths)
        mk_buf_addf(out, "%u.%u %cB", tenths / 10, tenths % 10, units[unit]);
    else
        mk_buf_addf(out, "%u %cB", round_half_even(n), units[unit]);
}

static void write_size(struct mk_buf *out, uint64_t size)
{
    mk_buf_add(out, MK_STR("<td class=\"size\""));
    if (size >= 1024)
        mk_buf_addf(out, " title=\"%llu bytes\"", (unsigned long long)size);
    mk_buf_add_char(out, '>');
    write_size_with_unit(out, size);
    mk_buf_add(out, MK_STR("</td>"));
}

static void write_entry(const struct listing *l, const struct entry *e, struct mk_buf *out)
{
    bool is_folder = e->kind == ENTRY_FOLDER;
    mk_buf_addf(out, "<tr><td class=\"name %s\"><a href=\"", entry_class(l, e));
    mk_url_escape(out, e->name);
    mk_buf_add(out, is_folder ? MK_STR("/\"><bdi>") : MK_STR("\"><bdi>"));
    write_text(out, e->name);
    mk_buf_add(out, is_folder ? MK_STR("</bdi>/</a></td>") : MK_STR("</bdi></a></td>"));
    if (is_folder)
        mk_buf_add(out, MK_STR("<td class=\"size\"></td>"));
    else
        write_size(out, (uint64_t)e->size);
    mk_buf_add(out, MK_STR("<td class=\"time\"><time>"));
    dirlisting_write_time(out, e->mtime, true);
    mk_buf_add(out, MK_STR("</time></td></tr>\n"));
}

static void write_foot(const struct listing *l, struct mk_buf *out)
{
    unsigned long long n = l->n_shown;
    mk_buf_addf(out, "</tbody>\n</table>\n<footer><span>%llu %s, ", n, n == 1 ? "entry" : "entries");
    write_size_with_unit(out, l->bytes_shown);
    mk_buf_add(out, MK_STR("</span> <span>Times are UTC</span> "));
    mk_buf_add(out, MK_STR("<a href=\"?format=json\">JSON</a> <a href=\"?format=text\">Text</a></footer>\n"
                           "</main>\n</body>\n</html>\n"));
}

const struct format dirlisting_format_html = {
    .word = "html",
    .type = MK_STR_INIT("text/html"),
    .content_type = MK_STR_INIT("text/html; charset=utf-8"),
    .write_head = write_head,
    .entry = write_entry,
    .write_foot = write_foot,
};
