/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the text of one file into classified lines. Checks the indentation, and rejects control bytes. The
 * reader (conf/read.h) executes directives and expands references. */
#ifndef MK_CONF_LEXER_H
#define MK_CONF_LEXER_H

#include "conf/report.h"

enum mk_conf_line_kind {
    MK_CONF_LINE_SECTION,  /* [word]; absent word: invalid header, so ignore the entries below it */
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
/* Stores the next line with content in *out; false at the end of the text. Reports and skips unusable
 * lines. */
bool mk_conf_lexer_next(struct mk_conf_lexer *l, struct mk_conf_line *out);

#endif
