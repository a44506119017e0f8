/* SPDX-License-Identifier: Apache-2.0 */
/* Stores entries compactly and sorts them. */
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
    const struct item **sorted; /* has space for all entries after dirlisting_entry_store_reserve_index() */
    size_t n, n_max;
    size_t memory, memory_max;
};

/* Returns false if a limit on entries or memory is reached, or if memory has run out. */
bool dirlisting_entry_store_add(struct store *s, const struct entry *e);
bool dirlisting_entry_store_reserve_index(struct store *s);
/* Fills and sorts `sorted`. */
void dirlisting_entry_store_sort(struct store *s, enum sort_key key, bool down);
void dirlisting_entry_store_get(const struct store *s, size_t i, struct entry *e);
void dirlisting_entry_store_free(struct store *s);

#endif
