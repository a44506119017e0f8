/* SPDX-License-Identifier: Apache-2.0 */
/* Tree of a router's patterns: one node per segment. Text nodes are found by a hash of the text and the
 * parent; parameter nodes are listed at the parent, the most specific first. */
#ifndef MK_HTTP_ROUTER_TREE_H
#define MK_HTTP_ROUTER_TREE_H

#include "http/router_pattern.h"

/* Index of a node; 0 means none, because it is the index of the root, which is no node's child. */
typedef uint32_t mk_router_node_id;

struct mk_router_node {
    enum mk_router_type type; /* MK_ROUTER_NO_TYPE: text */
    mk_str text;              /* a copy */
    uint32_t hash;            /* for text */
    uint32_t text_max;        /* 1 + length of the longest text among the child nodes; 0: none */
    mk_router_node_id parent;
    mk_router_node_id params; /* first parameter node below it */
    mk_router_node_id next;   /* a parameter's next sibling, which is less specific */
    uint32_t routes;          /* index of the router's first route that ends at this node; UINT32_MAX: none */
};

struct mk_router_tree {
    struct mk_router_node *nodes;
    mk_router_node_id *slots; /* open-addressing hash table of text nodes; its size is mask + 1 */
    uint32_t n, cap, mask, n_texts;
};

/* Initializes an empty tree. False: out of memory. */
bool mk_router_tree_init(struct mk_router_tree *t);
void mk_router_tree_fini(struct mk_router_tree *t);

/* Returns the node for the segments, and creates missing nodes. 0: out of memory; nodes created so far stay
 * and are harmless. */
mk_router_node_id mk_router_tree_add(struct mk_router_tree *t, const struct mk_router_segment *s, size_t n);

/* Returns the child with this text; 0: none. */
mk_router_node_id mk_router_tree_find_text(const struct mk_router_tree *t, mk_router_node_id parent,
                                           mk_str text);

#endif
