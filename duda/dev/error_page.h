/* SPDX-License-Identifier: Apache-2.0 */
/* Error pages: HTML for browsers, plain text for other programs. Escapes everything that comes from sources,
 * compilers and requests. */
#ifndef DUDA_DEV_ERROR_PAGE_H
#define DUDA_DEV_ERROR_PAGE_H

#include <monkey/buf.h>
#include <stdint.h>

struct dev_error_page {
    struct mk_buf *out;
    bool html;
};

/* The page reloads as soon as the state of `monkey run` differs from `state`; 0: from the state at the time
 * when the page was shown. */
void dev_error_page_begin(const struct dev_error_page *p, const char *title, mk_str about);
void dev_error_page_end(const struct dev_error_page *p, uint64_t state);
void dev_error_page_heading(const struct dev_error_page *p, mk_str text);
/* A route in a list: a link if a browser can follow it. */
void dev_error_page_route(const struct dev_error_page *p, mk_str method, mk_str path);
/* A link to the page with all routes. */
void dev_error_page_doc_link(const struct dev_error_page *p);
/* Preformatted lines, without terminal escape sequences. */
void dev_error_page_text(const struct dev_error_page *p, mk_str text);
/* Sentences, which are wrapped, without terminal escape sequences. */
void dev_error_page_prose(const struct dev_error_page *p, mk_str text);
/* A source line with the surrounding lines; nothing if the file cannot be read. */
void dev_error_page_excerpt(const struct dev_error_page *p, mk_str path, uint64_t line, uint64_t column,
                            mk_str message);
/* Output of a compiler or the server: an excerpt for each error, then for each warning, then the output
 * itself below the heading `about`. */
void dev_error_page_messages(const struct dev_error_page *p, mk_str messages, mk_str about);

/* Parses "FILE:LINE:COLUMN: error: MESSAGE" in compiler output; column 0: unknown. False: the line is
 * different. */
bool dev_error_page_parse_message(mk_str line, mk_str *path, uint64_t *row, uint64_t *column,
                                  mk_str *message);

#endif
