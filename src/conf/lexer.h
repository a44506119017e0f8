/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the text of one file into classified lines. Checks indentation and permitted bytes; the meaning
 * of directives and references is handled elsewhere. */
#ifndef MK_CONF_LEXER_H
#define MK_CONF_LEXER_H

#include "conf/report.h"

enum mk_conf_line_kind {
    MK_CONF_LINE_SECTION,  /* [word]; an absent word: the header is invalid, so ignore the entries below */
    MK_CONF_LINE_ENTRY,    /* word rest */
    MK_CONF_LINE_DIRECTIVE /* @word rest; the word includes the `@` */
};

struct mk_conf_line {
    enum mk_conf_line_kind kind;
    mk_str word, rest;            /* slices of the text */
    struct mk_conf_source_pos at; /* position of the word */
    unsigned rest_column;
};

struct mk_conf_lexer {
    mk_str rest; /* text not read yet; absent at the end of the file */
    struct mk_conf_source_pos at;
    struct mk_conf_report *report;
    mk_str indent; /* indent of the first indented line; absent before that line */
    unsigned indent_line;
};

/* Starts reading a file; `file` and `text` must outlive the lines. */
void mk_conf_lexer_init(struct mk_conf_lexer *l, mk_str file, mk_str text, struct mk_conf_report *report);
/* Returns the next line with content; false at the end. Reports errors and skips lines that are unusable. */
bool mk_conf_lexer_next(struct mk_conf_lexer *l, struct mk_conf_line *out);

#endif
