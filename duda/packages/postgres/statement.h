/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies SQL statements by their effects on the session, because all handlers share the connections. */
#ifndef DUDA_POSTGRES_STATEMENT_H
#define DUDA_POSTGRES_STATEMENT_H

#include <monkey/str.h>

struct postgres_statement {
    bool is_empty;
    bool is_query;             /* SELECT, INSERT and the like: may be prepared, and retried after a failure */
    bool controls_transaction; /* BEGIN, COMMIT and the like */
    bool copies;               /* switches the protocol: COPY FROM STDIN, TO STDOUT */
    bool changes_session;      /* changes session state: SET, LISTEN, temporary tables, locks */
    bool reads_session;        /* reads session state that other connections lack, such as lastval() */
};

struct postgres_statement postgres_statement_classify(mk_str text);

#endif
