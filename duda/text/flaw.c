/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong, and where. */
#include "text/member.h"

enum { POINTER_MAX = 512 };

void duda_flaw_write(struct mk_buf *out, const struct duda_flaw *flaw)
{
    if (flaw->line)
        mk_buf_addf(out, "line %zu, column %zu: ", flaw->line, flaw->column);
    mk_buf_add(out, flaw->text);
}

/* "~" and "/" in names are written as "~0" and "~1" (RFC 6901, section 3). */
static void add_step(struct mk_buf *out, const struct duda_where *where)
{
    mk_buf_add_char(out, '/');
    if (!where->name) {
        mk_buf_add_num(out, where->index);
        return;
    }
    for (const char *c = where->name; *c; c++) {
        if (*c == '~' || *c == '/')
            mk_buf_add(out, *c == '~' ? MK_STR("~0") : MK_STR("~1"));
        else
            mk_buf_add_char(out, *c);
    }
}

static void add_pointer(struct mk_buf *out, const struct duda_where *where)
{
    size_t n = 0;
    for (const struct duda_where *w = where; w; w = w->up)
        n++;
    for (; n > 0; n--) { /* from the outside to the inside; there are few */
        const struct duda_where *w = where;
        for (size_t i = 1; i < n; i++)
            w = w->up;
        add_step(out, w);
    }
}

bool duda_flaws_add(struct duda_flaws *flaws, const struct duda_allocator *memory,
                    const struct duda_where *where, mk_str text)
{
    if (flaws->n == DUDA_FLAWS_MAX)
        return false;
    char room[POINTER_MAX];
    struct mk_buf pointer = mk_buf_fixed(room, sizeof room);
    add_pointer(&pointer, where);
    struct duda_flaw *f = &flaws->at[flaws->n++];
    f->line = f->column = 0;
    f->pointer = duda_allocator_copy(memory, mk_buf_str(&pointer));
    f->text = duda_allocator_copy(memory, text);
    return flaws->n < DUDA_FLAWS_MAX;
}
