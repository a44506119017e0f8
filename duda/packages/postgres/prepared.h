/* SPDX-License-Identifier: Apache-2.0 */
/* The prepared statements of a connection. The server may lose them, for example by DISCARD ALL or because a
 * pooler switches sessions, and they may become invalid, for example by ALTER TABLE. */
#ifndef DUDA_POSTGRES_PREPARED_H
#define DUDA_POSTGRES_PREPARED_H

#include <monkey/buf.h>

enum { POSTGRES_PREPARED_MAX = 256, POSTGRES_NAME_MAX = 32 };

/* Stays in memory while a statement that uses it is in flight. */
struct postgres_prepared {
    char name[POSTGRES_NAME_MAX];
    mk_str text;
    bool is_dead; /* no further statement may use it */
    bool is_kept; /* exists on the server */
};

struct postgres_prepared_list {
    struct postgres_prepared *v[POSTGRES_PREPARED_MAX];
    unsigned n;
    uint64_t n_names;
    char prefix[20];   /* prefix of statement names: unique, because a pooler may map two connections to
                        * one session */
    unsigned n_losses; /* number of times that the server recently lost all prepared statements */
    uint64_t last_loss_ms;
    bool is_disabled; /* disabled, because the server keeps losing prepared statements */
};

/* Initializes the list of a new connection. */
void postgres_prepared_init(struct postgres_prepared_list *l);
void postgres_prepared_clear(struct postgres_prepared_list *l);
/* Returns NULL if the statement is not prepared. */
struct postgres_prepared *postgres_prepared_find(const struct postgres_prepared_list *l, mk_str text);
/* Returns NULL if the list is full. */
struct postgres_prepared *postgres_prepared_add(struct postgres_prepared_list *l, mk_str text);
/* Forgets all prepared statements, because the server does not know `p` and so has lost all of them. If this
 * has happened too often, sets is_disabled and returns true. */
bool postgres_prepared_forget_all(struct postgres_prepared_list *l, const struct postgres_prepared *p,
                                  uint64_t now_ms);
/* Frees dead entries. Call it when no statement is in flight. If a dead entry still exists on the server,
 * copies its name to `name` and returns true: the caller deallocates it there and calls again. Returns false
 * if no such entry is left. */
bool postgres_prepared_sweep(struct postgres_prepared_list *l, char name[POSTGRES_NAME_MAX]);

#endif
