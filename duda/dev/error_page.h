/* SPDX-License-Identifier: Apache-2.0 */
/* Pages about what went wrong, for the browser, as HTML, or for other programs, as text. All that comes from
 * sources, compilers and requests is escaped. */
#ifndef DUDA_DEV_ERROR_PAGE_H
#define DUDA_DEV_ERROR_PAGE_H

#include <monkey/buf.h>
#include <stdint.h>

struct dev_error_page {
    struct mk_buf *out;
    bool html;
};

/* `state`: the page reloads when `monkey run` is in another one; 0: in another one than when it was shown. */
void dev_error_page_begin(const struct dev_error_page *p, const char *title, mk_str about);
void dev_error_page_end(const struct dev_error_page *p, uint64_t state);
void dev_error_page_heading(const struct dev_error_page *p, mk_str text);
/* A route in a list: a link if a browser can follow it. */
void dev_error_page_route(const struct dev_error_page *p, mk_str method, mk_str path);
/* Where the page about all routes is. */
void dev_error_page_doc_link(const struct dev_error_page *p);
/* Lines as they are; escape sequences of terminals are removed. */
void dev_error_page_text(const struct dev_error_page *p, mk_str text);
/* The same for sentences, which are wrapped. */
void dev_error_page_prose(const struct dev_error_page *p, mk_str text);
/* A line of a source with those around it; nothing if the file cannot be read. */
void dev_error_page_excerpt(const struct dev_error_page *p, mk_str path, uint64_t line, uint64_t column,
                            mk_str what);
/* What a compiler or the server said: an excerpt for each error, then for each warning, then the words below
 * the heading `about`. */
void dev_error_page_messages(const struct dev_error_page *p, mk_str said, mk_str about);

/* "FILE:LINE:COLUMN: error: MESSAGE" in a line of a compiler; column 0: unknown. False: it is no such line.
 */
bool dev_error_page_parse_message(mk_str line, mk_str *path, uint64_t *row, uint64_t *column, mk_str *what);

#endif
