/* SPDX-License-Identifier: Apache-2.0 */
#include "entry_store.h"

#include <monkey/mem.h>
#include <stdlib.h>

enum { BLOCK = 16 * 1024, ALIGN = sizeof(int64_t) };

struct store_block {
    struct store_block *next;
    size_t used;
    alignas(8) char room[BLOCK];
};

static size_t item_size(size_t name_len)
{
    return (offsetof(struct item, name) + name_len + ALIGN - 1) / ALIGN * ALIGN;
}

static bool add_store_block(struct store *s)
{
    if (s->memory + sizeof(struct store_block) > s->memory_max)
        return false;
    struct store_block *b = mk_mem_alloc(sizeof *b);
    if (!b)
        return false;
    b->next = s->blocks;
    b->used = 0;
    s->blocks = b;
    s->memory += sizeof *b;
    return true;
}

bool dirlisting_entry_store_add(struct store *s, const struct entry *e)
{
    size_t size = item_size(e->name.len);
    if (s->n == s->n_max || e->name.len > UINT8_MAX)
        return false;
    if ((!s->blocks || BLOCK - s->blocks->used < size) && !add_store_block(s))
        return false;
    struct item *item = (struct item *)(void *)(s->blocks->room + s->blocks->used);
    *item = (struct item){
        .size = e->size, .mtime = e->mtime, .kind = (uint8_t)e->kind, .len = (uint8_t)e->name.len};
    memcpy(item->name, e->name.p, e->name.len);
    s->blocks->used += size;
    s->n++;
    return true;
}

bool dirlisting_entry_store_reserve_index(struct store *s)
{
    size_t size = (s->n ? s->n : 1) * sizeof *s->sorted;
    if (s->memory + size > s->memory_max)
        return false;
    s->sorted = mk_mem_alloc(size);
    s->memory += s->sorted ? size : 0;
    return s->sorted != NULL;
}

/* Ignores case, except between names that are otherwise equal. */
static int compare_names(const struct item *a, const struct item *b)
{
    size_t common = a->len < b->len ? a->len : b->len;
    for (size_t i = 0; i < common; i++) {
        unsigned char x = (unsigned char)mk_char_lower(a->name[i]),
                      y = (unsigned char)mk_char_lower(b->name[i]);
        if (x != y)
            return x < y ? -1 : 1;
    }
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return memcmp(a->name, b->name, common);
}

struct order {
    enum sort_key key;
    bool down;
};

static int compare_items(const void *left, const void *right, void *ctx)
{
    const struct item *a = *(const struct item *const *)left, *b = *(const struct item *const *)right;
    const struct order *order = ctx;
    int diff = 0;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (order->key == SORT_SIZE && a->kind == ENTRY_FILE)
        diff = (a->size > b->size) - (a->size < b->size);
    else if (order->key == SORT_TIME)
        diff = (a->mtime > b->mtime) - (a->mtime < b->mtime);
    if (diff == 0)
        diff = compare_names(a, b);
    return order->down ? -diff : diff;
}

void dirlisting_entry_store_sort(struct store *s, enum sort_key key, bool down)
{
    struct order order = {key, down};
    size_t n = 0;
    for (const struct store_block *b = s->blocks; b; b = b->next)
        for (size_t at = 0; at < b->used;) {
            const struct item *item = (const struct item *)(const void *)(b->room + at);
            s->sorted[n++] = item;
            at += item_size(item->len);
        }
    qsort_r(s->sorted, n, sizeof *s->sorted, compare_items, &order);
}

void dirlisting_entry_store_get(const struct store *s, size_t i, struct entry *e)
{
    const struct item *item = s->sorted[i];
    *e = (struct entry){.name = mk_str_of(item->name, item->len),
                        .size = item->size,
                        .mtime = item->mtime,
                        .kind = (enum entry_kind)item->kind};
}

void dirlisting_entry_store_free(struct store *s)
{
    while (s->blocks) {
        struct store_block *b = s->blocks;
        s->blocks = b->next;
        mk_mem_free(b);
    }
    mk_mem_free(s->sorted);
    s->sorted = NULL;
    s->n = s->memory = 0;
}
