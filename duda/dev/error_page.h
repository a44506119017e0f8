/* SPDX-License-Identifier: Apache-2.0 */
/* Error pages: HTML for browsers, plain text for other programs. All text from sources, compilers and
 * requests is escaped. */
#ifndef DUDA_DEV_ERROR_PAGE_H
#define DUDA_DEV_ERROR_PAGE_H

#include <monkey/buf.h>
#include <stdint.h>

struct dev_error_page {
    struct mk_buf *out;
    bool html;
};

/* Begins a page. */
void dev_error_page_begin(const struct dev_error_page *p, const char *title, mk_str about);
/* Ends a page. The browser reloads it as soon as the state of `monkey run` differs from `state` or, if
 * `state` is 0, from the state at the time when the page was shown. */
void dev_error_page_end(const struct dev_error_page *p, uint64_t state);
void dev_error_page_add_heading(const struct dev_error_page *p, mk_str text);
/* Adds a route to a list, as a link if a browser can follow it. */
void dev_error_page_add_route(const struct dev_error_page *p, mk_str method, mk_str path);
/* Adds a link to the documentation page. */
void dev_error_page_add_doc_link(const struct dev_error_page *p);
/* Adds preformatted lines, without terminal escape sequences. */
void dev_error_page_add_text(const struct dev_error_page *p, mk_str text);
/* Adds prose, which the browser wraps, without terminal escape sequences. */
void dev_error_page_add_prose(const struct dev_error_page *p, mk_str text);
/* Adds a source line with the surrounding lines; adds nothing if the file cannot be read. */
void dev_error_page_add_excerpt(const struct dev_error_page *p, mk_str path, uint64_t line, uint64_t column,
                                mk_str message);
/* Adds the output of a compiler or the server: an excerpt for each error, then for each warning, and the
 * output itself below the heading `about`. */
void dev_error_page_add_messages(const struct dev_error_page *p, mk_str messages, mk_str about);

/* Parses "FILE:LINE:COLUMN: error: MESSAGE" in compiler output; column 0 means unknown. Returns false if the
 * line has another format. */
bool dev_error_page_parse_message(mk_str line, mk_str *path, uint64_t *row, uint64_t *column,
                                  mk_str *message);

#endif
