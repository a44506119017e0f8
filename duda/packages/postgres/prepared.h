/* SPDX-License-Identifier: Apache-2.0 */
/* The statements that the server of a connection keeps for us. It may forget them, as after DISCARD ALL or
 * when a pooler puts another session in its place, and what they stand for may change, as by ALTER TABLE. */
#ifndef DUDA_POSTGRES_PREPARED_H
#define DUDA_POSTGRES_PREPARED_H

#include <monkey/buf.h>

enum { POSTGRES_PREPARED_MAX = 256, POSTGRES_NAME_MAX = 32 };

/* In memory as long as a statement that uses it is under way. */
struct postgres_prepared {
    char name[POSTGRES_NAME_MAX];
    mk_str text;
    bool is_dead; /* not to be used any more */
    bool is_kept; /* the server has it */
};

struct postgres_prepared_list {
    struct postgres_prepared *v[POSTGRES_PREPARED_MAX];
    unsigned n;
    uint64_t n_names;
    char prefix[20]; /* of names: no other connection has it, though a pooler may put both into one session */
    unsigned n_losses; /* how often the server has forgotten them within a while */
    uint64_t lost_ms;
    bool is_off; /* it forgets them again and again */
};

/* For a new connection. */
void postgres_prepared_init(struct postgres_prepared_list *l);
void postgres_prepared_clear(struct postgres_prepared_list *l);
/* NULL: it is not prepared. */
struct postgres_prepared *postgres_prepared_find(const struct postgres_prepared_list *l, mk_str text);
/* NULL: there is no room. */
struct postgres_prepared *postgres_prepared_add(struct postgres_prepared_list *l, mk_str text);
/* The server does not know `p`: so it has forgotten all. True: it has done so often that is_off is set now. */
bool postgres_prepared_forget_all(struct postgres_prepared_list *l, const struct postgres_prepared *p,
                                  uint64_t now_ms);
/* Nothing is under way: frees what is dead. One that the server still has comes first, and is to be
 * deallocated: its name is copied to `name`. False: there is none. */
bool postgres_prepared_sweep(struct postgres_prepared_list *l, char name[POSTGRES_NAME_MAX]);

#endif
