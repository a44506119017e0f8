/* SPDX-License-Identifier: Apache-2.0 */
#include "error_page.h"

#include "ipc_protocol.h"
#include "source.h"

#include <monkey/text.h>
#include <stdio.h>

enum { AROUND = 4, EXCERPTS_MAX = 20, LINE_SHOWN = 400 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>"
    "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<style>\n"
    ":root{color-scheme:light dark;--bad:#b3261e;--soft:#8884;--mark:#f9dedc}\n"
    "@media(prefers-color-scheme:dark){:root{--bad:#f2b8b5;--mark:#601410}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.4rem;color:var(--bad);margin:0 0 .5rem}h2{font-size:1rem;margin:1.5rem 0 .25rem}\n"
    "pre{font:14px/1.45 ui-monospace,monospace;overflow-x:auto;border:1px solid "
    "var(--soft);border-radius:6px;"
    "padding:.5rem 0;margin:.25rem 0}pre span{display:block;padding:0 .75rem}\n"
    "pre i{font-style:normal;opacity:.6;user-select:none}.bad{background:var(--mark)}\n"
    ".route{font:14px/1.7 ui-monospace,monospace;overflow-wrap:anywhere}.route b{display:inline-block;"
    "min-width:4.5em;opacity:.7}pre.why span{white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "footer{margin-top:2rem;opacity:.7;font-size:.9rem}\n</style>\n";

static const char script[] =
    "<footer id=wait>This page reloads when %s.</footer>\n<script>\n"
    "let mine = \"%s\"; const events = new EventSource(\"" DEV_EVENTS_PATH "\");\n"
    "events.onmessage = e => { mine = mine || e.data; if (e.data !== mine) { events.close(); "
    "location.reload(); } "
    "};\n</script>\n</html>\n";

static void append_escaped(const struct dev_error_page *p, mk_str text)
{
    if (p->html)
        mk_html_escape(p->out, text);
    else
        mk_buf_add(p->out, text);
}

static void append_tag(const struct dev_error_page *p, const char *html)
{
    if (p->html)
        mk_buf_add(p->out, mk_str_from_c(html));
}

/* Appends a line; in HTML, it is between the tags `open` and `close`. */
static void append_page_line(const struct dev_error_page *p, const char *open, mk_str text, const char *close)
{
    append_tag(p, open);
    append_escaped(p, text);
    append_tag(p, close);
    mk_buf_add_char(p->out, '\n');
}

void dev_error_page_begin(const struct dev_error_page *p, const char *title, mk_str about)
{
    append_tag(p, head);
    if (p->html)
        append_page_line(p, "<title>", mk_str_from_c(title), "</title>");
    append_page_line(p, "<h1>", mk_str_from_c(title), "</h1>");
    if (about.len)
        append_page_line(p, "<p>", about, "</p>");
}

void dev_error_page_end(const struct dev_error_page *p, uint64_t state)
{
    char mine[24] = "";
    if (state)
        snprintf(mine, sizeof mine, "%llu", (unsigned long long)state);
    if (p->html)
        mk_buf_addf(p->out, script, state ? "the source compiles" : "the source changes", mine);
}

void dev_error_page_add_route(const struct dev_error_page *p, mk_str method, mk_str path)
{
    bool links = mk_str_eq(mk_str_first(method, 3), MK_STR("GET")) && mk_str_find(path, ':') == MK_STR_NONE &&
                 mk_str_find(path, '*') == MK_STR_NONE;
    append_tag(p, "<div class=route><b>");
    append_escaped(p, method);
    mk_buf_add(p->out, p->html ? MK_STR("</b> ") : MK_STR(" "));
    if (links) {
        append_tag(p, "<a href=\"");
        if (p->html)
            append_escaped(p, path);
        append_tag(p, "\">");
    }
    append_escaped(p, path);
    if (links)
        append_tag(p, "</a>");
    append_tag(p, "</div>");
    mk_buf_add_char(p->out, '\n');
}

void dev_error_page_add_doc_link(const struct dev_error_page *p)
{
    mk_buf_add(p->out, p->html
                           ? MK_STR("<p><a href=\"" DEV_DOC_PATH "\">Documentation of the routes</a></p>\n")
                           : MK_STR("Documentation: " DEV_DOC_PATH "\n"));
}

void dev_error_page_add_heading(const struct dev_error_page *p, mk_str text)
{
    append_page_line(p, "<h2>", text, "</h2>");
}

/* Returns the length of the escape sequence at this position, for example a color; 0 if there is none. */
static size_t escape_sequence_len(mk_str s)
{
    if (s.len < 2 || s.p[0] != '\033')
        return 0;
    size_t n = 2;
    while (s.p[1] == '[' && n < s.len && (s.p[n - 1] == '[' || s.p[n - 1] < '@'))
        n++;
    return n;
}

static void append_without_escapes(const struct dev_error_page *p, mk_str text)
{
    while (text.len) {
        size_t n = escape_sequence_len(text);
        if (!n) {
            while (n < text.len && text.p[n] != '\033')
                n++;
            n = n ? n : 1;
            append_escaped(p, mk_str_first(text, n));
        }
        text = mk_str_skip(text, n);
    }
}

static void append_preformatted(const struct dev_error_page *p, const char *open, mk_str text)
{
    append_tag(p, open);
    append_without_escapes(p, text);
    append_tag(p, "</span></pre>");
    if (text.len && text.p[text.len - 1] != '\n')
        mk_buf_add_char(p->out, '\n');
}

void dev_error_page_add_text(const struct dev_error_page *p, mk_str text)
{
    append_preformatted(p, "<pre><span>", text);
}

void dev_error_page_add_prose(const struct dev_error_page *p, mk_str text)
{
    append_preformatted(p, "<pre class=why><span>", text);
}

/* ---- Excerpts ---- */

static void append_excerpt_line(const struct dev_error_page *p, mk_str text, uint64_t row, uint64_t column,
                                bool bad)
{
    char number[32];
    snprintf(number, sizeof number, "%c%5llu  ", bad ? '>' : ' ', (unsigned long long)row);
    append_tag(p, bad ? "<span class=bad><i>" : "<span><i>");
    append_escaped(p, mk_str_from_c(number));
    append_tag(p, "</i>");
    append_escaped(p, mk_str_first(text, LINE_SHOWN));
    mk_buf_add_char(p->out, '\n');
    if (bad && column && column < LINE_SHOWN) {
        mk_buf_addf(p->out, "%*s", (int)(8 + column - 1), "");
        append_page_line(p, "", MK_STR("^"), "");
    }
    append_tag(p, "</span>");
}

void dev_error_page_add_excerpt(const struct dev_error_page *p, mk_str path, uint64_t row, uint64_t column,
                                mk_str message)
{
    char name[PATH_MAX], position[64];
    struct mk_buf text = mk_buf_growing(DEV_SOURCE_MAX);
    snprintf(position, sizeof position, ":%llu: ", (unsigned long long)row);
    append_tag(p, "<h2>");
    append_escaped(p, path);
    append_escaped(p, mk_str_from_c(position));
    append_without_escapes(p, message);
    append_tag(p, "</h2>");
    mk_buf_add_char(p->out, '\n');
    int len = snprintf(name, sizeof name, "%.*s", MK_STR_ARG(path));
    if (len > 0 && len < PATH_MAX && dev_source_read_file(name, &text)) {
        mk_str rest = mk_buf_str(&text);
        append_tag(p, "<pre>");
        for (uint64_t i = 1; rest.p && rest.len && i <= row + AROUND; i++) {
            mk_str source_line = mk_str_cut(&rest, '\n');
            if (i + AROUND >= row)
                append_excerpt_line(p, source_line, i, column, i == row);
        }
        append_tag(p, "</pre>\n");
    }
    mk_buf_free(&text);
}

/* ---- Compiler messages ---- */

static bool parse_number_prefix(mk_str *s, uint64_t *n)
{
    size_t i = 0;
    while (i < s->len && mk_char_is_digit(s->p[i]))
        i++;
    if (i == 0 || i >= s->len || s->p[i] != ':' || !mk_num_parse(mk_str_first(*s, i), n))
        return false;
    *s = mk_str_skip(*s, i + 1);
    return true;
}

bool dev_error_page_parse_message(mk_str s, mk_str *path, uint64_t *row, uint64_t *column, mk_str *message)
{
    size_t colon = mk_str_find(s, ':');
    *path = mk_str_first(s, colon);
    if (colon == MK_STR_NONE || colon == 0)
        return false;
    s = mk_str_skip(s, colon + 1);
    if (!parse_number_prefix(&s, row))
        return false;
    if (!parse_number_prefix(&s, column))
        *column = 0;
    *message = mk_str_trim(s);
    return mk_str_starts(*message, MK_STR("error:")) || mk_str_starts(*message, MK_STR("fatal error:")) ||
           mk_str_starts(*message, MK_STR("warning:"));
}

static void strip_escapes(struct mk_buf *out, mk_str text)
{
    const struct dev_error_page plain = {.out = out};
    append_without_escapes(&plain, text);
}

/* Appends the excerpts for all errors or all warnings. Returns the number of excerpts so far. */
static unsigned append_excerpts(const struct dev_error_page *p, mk_str rest, bool warnings, unsigned n)
{
    mk_str path, message;
    uint64_t row, column;
    while (rest.p && n < EXCERPTS_MAX) {
        bool is_one = dev_error_page_parse_message(mk_str_cut(&rest, '\n'), &path, &row, &column, &message);
        if (!is_one || mk_str_starts(message, MK_STR("warning:")) != warnings)
            continue;
        dev_error_page_add_excerpt(p, path, row, column, message);
        n++;
    }
    return n;
}

void dev_error_page_add_messages(const struct dev_error_page *p, mk_str messages, mk_str about)
{
    struct mk_buf plain = mk_buf_growing(DEV_PAGE_MAX);
    strip_escapes(&plain, mk_str_first(messages, DEV_PAGE_MAX / 4));
    unsigned n = append_excerpts(p, mk_buf_str(&plain), false, 0);
    (void)append_excerpts(p, mk_buf_str(&plain), true, n);
    dev_error_page_add_heading(p, about);
    dev_error_page_add_text(p, mk_buf_str(&plain));
    mk_buf_free(&plain);
}
