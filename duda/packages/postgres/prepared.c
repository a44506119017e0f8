/* SPDX-License-Identifier: Apache-2.0 */
#include "prepared.h"

#include <monkey/mem.h>
#include <monkey/text.h>
#include <stdio.h>

/* LOSSES_MAX losses within LOSSES_MS mean that there is a connection pooler between us and the server. */
enum { LOSSES_MAX = 3, LOSSES_MS = 60000 };

void postgres_prepared_init(struct postgres_prepared_list *l)
{
    uint64_t number;
    mk_random(&number, sizeof number);
    *l = (struct postgres_prepared_list){.n = 0};
    snprintf(l->prefix, sizeof l->prefix, "d%016llx", (unsigned long long)number);
}

void postgres_prepared_clear(struct postgres_prepared_list *l)
{
    while (l->n)
        mk_mem_free(l->v[--l->n]);
}

struct postgres_prepared *postgres_prepared_find(const struct postgres_prepared_list *l, mk_str text)
{
    for (unsigned i = 0; i < l->n; i++)
        if (!l->v[i]->is_dead && mk_str_eq(l->v[i]->text, text))
            return l->v[i];
    return NULL;
}

struct postgres_prepared *postgres_prepared_add(struct postgres_prepared_list *l, mk_str text)
{
    struct postgres_prepared *p =
        l->n < POSTGRES_PREPARED_MAX && !l->is_disabled ? mk_mem_alloc(sizeof *p + text.len) : NULL;
    if (!p)
        return NULL;
    *p = (struct postgres_prepared){.text = {(char *)(p + 1), text.len}};
    memcpy(p + 1, text.p, text.len);
    snprintf(p->name, sizeof p->name, "%s_%u", l->prefix, (unsigned)(l->n_names++ % 1000000000));
    l->v[l->n++] = p;
    return p;
}

/* Several statements in flight may report the same loss, which counts only once. */
bool postgres_prepared_forget_all(struct postgres_prepared_list *l, const struct postgres_prepared *p,
                                  uint64_t now_ms)
{
    if (p->is_dead)
        return false;
    for (unsigned i = 0; i < l->n; i++) {
        l->v[i]->is_dead = true;
        l->v[i]->is_kept = false;
    }
    l->n_losses = now_ms - l->last_loss_ms < LOSSES_MS ? l->n_losses + 1 : 1;
    l->last_loss_ms = now_ms;
    bool was_off = l->is_disabled;
    l->is_disabled = was_off || l->n_losses >= LOSSES_MAX;
    return l->is_disabled && !was_off;
}

bool postgres_prepared_sweep(struct postgres_prepared_list *l, char name[POSTGRES_NAME_MAX])
{
    for (unsigned i = 0; i < l->n;) {
        struct postgres_prepared *p = l->v[i];
        bool is_kept = p->is_kept;
        if (!p->is_dead) {
            i++;
            continue;
        }
        memcpy(name, p->name, sizeof p->name);
        l->v[i] = l->v[--l->n];
        mk_mem_free(p);
        if (is_kept)
            return true;
    }
    return false;
}
