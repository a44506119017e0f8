/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled template from inside: a list of nodes. */
#ifndef DUDA_TEXT_TEMPLATE_H
#define DUDA_TEXT_TEMPLATE_H

#include <duda/template.h>

enum duda_template_node_kind {
    DUDA_NODE_TEXT,
    DUDA_NODE_VALUE,
    DUDA_NODE_UNESCAPED,
    DUDA_NODE_SECTION,
    DUDA_NODE_INVERTED,
    DUDA_NODE_PARTIAL
};

struct duda_template_node {
    enum duda_template_node_kind kind;
    bool alone;    /* a partial that has its line for itself */
    mk_str text;   /* text, or the name in a tag */
    mk_str indent; /* of such a partial */
    size_t end;    /* sections: the node behind the last one inside */
    size_t at;     /* of the tag in the source */
};

struct duda_template {
    char *name;
    mk_str source; /* all texts point into it */
    struct duda_template_node *nodes;
    size_t n, cap;
};

/* "people.html, line 3, column 5: ". */
void duda_template_position(const struct duda_template *t, size_t at, struct mk_buf *out);

#endif
