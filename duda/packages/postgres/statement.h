/* SPDX-License-Identifier: Apache-2.0 */
/* What a statement does beside its result, as its words say: connections are shared by all handlers. */
#ifndef DUDA_POSTGRES_STATEMENT_H
#define DUDA_POSTGRES_STATEMENT_H

#include <monkey/str.h>

struct postgres_statement {
    bool is_empty;
    bool is_query; /* it is one transaction at most: it may be prepared, and repeated when it has failed */
    bool ends_transaction; /* begins or ends one */
    bool copies;           /* speaks another protocol: COPY FROM STDIN, TO STDOUT */
    bool changes_session;  /* leaves something in its session: SET, LISTEN, temporary tables, locks */
    bool reads_session;    /* such as lastval(), of which another connection knows nothing */
};

struct postgres_statement postgres_statement_classify(mk_str text);

#endif
