/* SPDX-License-Identifier: Apache-2.0 */
/* The challenge page: the built-in one, which CMakeLists.txt embeds from the folder page, or a file of the administrator. */
#ifndef CHALLENGE_PAGE_H
#define CHALLENGE_PAGE_H

#include <monkey/buf.h>

/* Takes the place of the script in the file of the administrator. */
#define CHALLENGE_PAGE_MARK "<!-- challenge -->"

/* Maximum size of the file. */
enum { CHALLENGE_PAGE_MAX = 64 * 1024 };

extern const mk_str challenge_page_html, challenge_page_script;

struct challenge_page {
    mk_str before, after; /* the HTML around the mark */
};

/* Splits the HTML at the mark. Returns false unless it contains the mark exactly once. */
bool challenge_page_split(mk_str html, struct challenge_page *page);
/* Writes the page with the script that solves the task. */
void challenge_page_write(const struct challenge_page *page, mk_str task, struct mk_buf *out);
/* Writes the Content-Security-Policy, which allows no script but ours. */
void challenge_page_write_policy(struct mk_buf *out);

#endif
