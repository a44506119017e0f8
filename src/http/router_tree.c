/* SPDX-License-Identifier: Apache-2.0 */
#include "http/router_tree.h"

#include <monkey/mem.h>
#include <monkey/text.h>

#include "base/compiler.h"
#include "http/router_param_type.h"

enum { FIRST_NODES = 32, FIRST_SLOTS = 64 };

static struct mk_router_node new_node(mk_router_node_id parent, enum mk_router_type type)
{
    return (struct mk_router_node){.type = type, .parent = parent, .routes = UINT32_MAX};
}

bool mk_router_tree_init(struct mk_router_tree *t)
{
    *t = (struct mk_router_tree){.cap = FIRST_NODES, .mask = FIRST_SLOTS - 1, .n = 1};
    t->nodes = mk_mem_zalloc(FIRST_NODES, sizeof *t->nodes);
    t->slots = mk_mem_zalloc(FIRST_SLOTS, sizeof *t->slots);
    if (!t->nodes || !t->slots)
        return false;
    t->nodes[0] = new_node(0, MK_ROUTER_NO_TYPE);
    return true;
}

void mk_router_tree_fini(struct mk_router_tree *t)
{
    for (uint32_t i = 0; t->nodes && i < t->n; i++)
        mk_mem_free((void *)(uintptr_t)t->nodes[i].text.p);
    mk_mem_free(t->nodes);
    mk_mem_free(t->slots);
}

/* ---- Hash table of text nodes ---- */

/* The strings come from the program, so clients cannot provoke collisions. */
static uint32_t text_hash(mk_router_node_id parent, mk_str text)
{
    uint64_t hash = mk_fnv1a(MK_FNV1A_INIT ^ parent * UINT64_C(2654435761), text);
    return (uint32_t)(hash ^ hash >> 32);
}

/* Returns the slot of the text, or the free slot where it would be inserted. The table always has free
 * slots. */
static mk_router_node_id *text_slot(const struct mk_router_tree *t, uint32_t hash, mk_router_node_id parent,
                                    mk_str text)
{
    for (uint32_t i = hash;; i++) {
        mk_router_node_id *slot = &t->slots[i & t->mask];
        const struct mk_router_node *n = &t->nodes[*slot];
        if (*slot == 0 || (n->hash == hash && n->parent == parent && mk_str_eq(n->text, text)))
            return slot;
    }
}

mk_router_node_id mk_router_tree_find_text(const struct mk_router_tree *t, mk_router_node_id parent,
                                           mk_str text)
{
    if (text.len >= t->nodes[parent].text_max)
        return 0;
    return *text_slot(t, text_hash(parent, text), parent, text);
}

/* Enlarges the table if needed, so that half of its slots stay free. */
static bool grow_slots(struct mk_router_tree *t)
{
    if (2 * (t->n_texts + 1) <= t->mask)
        return true;
    uint32_t n = 2 * (t->mask + 1);
    mk_router_node_id *slots = mk_mem_zalloc(n, sizeof *slots);
    if (!slots)
        return false;
    mk_mem_free(t->slots);
    t->slots = slots;
    t->mask = n - 1;
    for (mk_router_node_id i = 1; i < t->n; i++) {
        const struct mk_router_node *node = &t->nodes[i];
        if (node->type == MK_ROUTER_NO_TYPE)
            *text_slot(t, node->hash, node->parent, node->text) = i;
    }
    return true;
}

/* ---- Adding ---- */

static mk_router_node_id append_node(struct mk_router_tree *t, mk_router_node_id parent,
                                     enum mk_router_type type)
{
    if (t->n == t->cap) {
        struct mk_router_node *nodes = mk_mem_realloc(t->nodes, 2 * sizeof *nodes * t->cap);
        if (!nodes)
            return 0;
        t->nodes = nodes;
        t->cap *= 2;
    }
    t->nodes[t->n] = new_node(parent, type);
    return t->n++;
}

static mk_router_node_id append_text_node(struct mk_router_tree *t, mk_router_node_id parent, mk_str text)
{
    char *copy = mk_mem_alloc(text.len + 1);
    mk_router_node_id id = copy && grow_slots(t) ? append_node(t, parent, MK_ROUTER_NO_TYPE) : 0;
    if (!id) {
        mk_mem_free(copy);
        return 0;
    }
    memcpy(copy, text.p, text.len);
    struct mk_router_node *node = &t->nodes[id], *above = &t->nodes[parent];
    node->text = mk_str_of(copy, text.len);
    node->hash = text_hash(parent, text);
    *text_slot(t, node->hash, parent, text) = id;
    above->text_max = (uint32_t)mk_max(above->text_max, text.len + 1);
    t->n_texts++;
    return id;
}

static mk_router_node_id find_or_add_text(struct mk_router_tree *t, mk_router_node_id parent, mk_str text)
{
    mk_router_node_id id = mk_router_tree_find_text(t, parent, text);
    return id ? id : append_text_node(t, parent, text);
}

static mk_router_node_id find_or_add_param(struct mk_router_tree *t, mk_router_node_id parent,
                                           enum mk_router_type type)
{
    mk_router_node_id before = 0, after = t->nodes[parent].params;
    while (after && t->nodes[after].type < type) {
        before = after;
        after = t->nodes[after].next;
    }
    if (after && t->nodes[after].type == type)
        return after;
    mk_router_node_id id = append_node(t, parent, type);
    if (!id)
        return 0;
    t->nodes[id].next = after;
    *(before ? &t->nodes[before].next : &t->nodes[parent].params) = id;
    return id;
}

mk_router_node_id mk_router_tree_add(struct mk_router_tree *t, const struct mk_router_segment *s, size_t n)
{
    mk_router_node_id at = 0;
    for (size_t i = 0; i < n; i++) {
        at = s[i].type == MK_ROUTER_NO_TYPE ? find_or_add_text(t, at, s[i].text)
                                            : find_or_add_param(t, at, s[i].type);
        if (!at)
            break;
    }
    return at;
}
