/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the parser of conditions (monkey/condition.h). */
#ifndef MK_SETUP_CONDITION_PARSER_H
#define MK_SETUP_CONDITION_PARSER_H

#include "conf/table.h"
#include "web/condition.h"

#define MK_CONDITION_NETWORK_FORMS                                                                           \
    "192.0.2.7, 192.0.2.0/24 or 2001:db8::/32 (without bits after its prefix), unix: or all"

struct mk_condition_parser {
    const struct mk_conf_ctx *ctx;
    struct mk_conditions *list;
    unsigned allowed;               /* subjects */
    unsigned seen[2];               /* subjects of the conditions before; [1]: of the negated ones */
    struct mk_condition *condition; /* the condition whose values follow; NULL: none yet */
    mk_str named;                   /* the word of that condition, until it has a value */
    mk_str negation;                /* the word `not` before a condition */
    bool is_bare;                   /* values without a subject may follow */
    bool needs_name;                /* the name of a header, cookie or parameter follows */
    bool is_substring;              /* the values are parts of texts */
    struct mk_glob *globs;          /* values of the current condition */
    size_t n_globs;
    const struct mk_conf_source_pos *line; /* line of a list that is being parsed; NULL: none */
    /* Adds a line of a list as a value of the condition. */
    bool (*add_line)(struct mk_condition_parser *p, mk_str line);
};

/* Reports "`part` is WHAT: expected ..." at the line of the list, or else in the configuration. Returns
 * false. */
bool mk_condition_parser_error(const struct mk_condition_parser *p, mk_str part, const char *what,
                               const char *expected);

#endif
