/* SPDX-License-Identifier: Apache-2.0 */
/* Entries to be sorted, stored compactly. */
#ifndef DIRLISTING_ENTRY_STORE_H
#define DIRLISTING_ENTRY_STORE_H

#include "folder.h"

enum sort_key { SORT_NAME, SORT_SIZE, SORT_TIME, SORT_NONE };

struct item {
    int64_t size, mtime;
    uint8_t kind, len;
    char name[];
};

struct store_block;

struct store {
    struct store_block *blocks;
    const struct item **sorted; /* capacity for all entries, after dirlisting_entry_store_prepare() */
    size_t n, n_max;
    size_t memory, memory_max;
};

/* False: too many entries, too much memory, or out of memory. */
bool dirlisting_entry_store_add(struct store *s, const struct entry *e);
bool dirlisting_entry_store_prepare(struct store *s);
/* Sorts `sorted`. */
void dirlisting_entry_store_sort(struct store *s, enum sort_key key, bool down);
void dirlisting_entry_store_get(const struct store *s, size_t i, struct entry *e);
void dirlisting_entry_store_free(struct store *s);

#endif
