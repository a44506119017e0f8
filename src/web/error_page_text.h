/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and style of the built-in error pages. */
#ifndef MK_WEB_ERROR_PAGE_TEXT_H
#define MK_WEB_ERROR_PAGE_TEXT_H

extern const char mk_error_page_style[], mk_error_page_picture[];

/* Returns a text that tells the visitor what the error means, and what to do. */
const char *mk_error_page_explanation(unsigned status);

#endif
