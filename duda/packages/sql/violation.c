/* SPDX-License-Identifier: Apache-2.0 */
/* The constraint that a handler has violated last. */
#include "violation.h"

#include <duda/memory.h>
#include <duda/middleware.h>
#include <monkey/mem.h>

static const char key; /* of the attachment */

/* Copies the violation with its texts into one block. */
static struct duda_sql_violation *copy_violation(void *block, const struct duda_sql_violation *from)
{
    struct duda_sql_violation *to = block;
    char *at = (char *)(to + 1);
    *to = *from;
    mk_str *texts[] = {&to->constraint, &to->table, &to->columns};
    for (size_t i = 0; i < MK_LEN(texts); i++) {
        if (!texts[i]->p)
            continue;
        memcpy(at, texts[i]->p, texts[i]->len);
        at[texts[i]->len] = 0;
        texts[i]->p = at;
        at += texts[i]->len + 1;
    }
    return to;
}

static size_t violation_size(const struct duda_sql_violation *v)
{
    return sizeof *v + v->constraint.len + v->table.len + v->columns.len + 3;
}

/* On the heap, because duda_arena_rewind() may free memory of the handler. */
void sql_violation_remember(struct duda_ctx *d, const struct duda_sql_violation *violation)
{
    void *block = mk_mem_alloc(violation_size(violation));
    if (block && duda_attach(d, &key, copy_violation(block, violation), mk_mem_free))
        return; /* out of memory */
}

void duda_sql_set_violation(struct duda_ctx *d, struct duda_sql_result *result,
                            const struct duda_sql_violation *violation)
{
    void *block = duda_alloc(d, violation_size(violation));
    if (block)
        result->violation = copy_violation(block, violation);
    sql_violation_remember(d, violation);
}

const struct duda_sql_violation *duda_sql_last_violation(struct duda_ctx *d)
{
    static const struct duda_sql_violation none = {
        DUDA_SQL_NO_CONSTRAINT, {NULL, 0}, {NULL, 0}, {NULL, 0}, {0}};
    const struct duda_sql_violation *last = duda_attached(d, &key);
    return last ? last : &none;
}
