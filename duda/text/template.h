/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a compiled template: a list of nodes. */
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
    bool alone;    /* a partial alone on its line */
    mk_str text;   /* text, or the name in a tag */
    mk_str indent; /* indentation of that partial */
    size_t end;    /* for a section: index of the node after its last inner node */
    size_t at;     /* offset of the tag in the source */
};

struct duda_template {
    char *name;
    mk_str source; /* all strings are slices of it */
    struct duda_template_node *nodes;
    size_t n, cap;
};

/* Formats a position: "people.html, line 3, column 5: ". */
void duda_template_position(const struct duda_template *t, size_t at, struct mk_buf *out);

#endif
