/* SPDX-License-Identifier: Apache-2.0 */
#include "server/outbox.h"

#include <fcntl.h>

#include "base/mem.h"
#include "os/fd.h"

struct mk_letter {
    struct mk_letter *next;
    struct mk_control_message m;
    char text[];
};

static mk_err keep(struct mk_outbox *o, const struct mk_control_message *m)
{
    struct mk_letter *l = mk_mem_zalloc(1, sizeof *l + m->text.len);
    if (!l)
        return -ENOMEM;
    l->m = *m;
    l->m.text = mk_str_of(l->text, m->text.len);
    if (m->text.len)
        memcpy(l->text, m->text.p, m->text.len);
    if (m->fd >= 0 && (l->m.fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        mk_err e = mk_err_last();
        mk_mem_free(l);
        return e;
    }
    if (o->last)
        o->last->next = l;
    else
        o->first = l;
    o->last = l;
    return 0;
}

static void drop_first(struct mk_outbox *o)
{
    struct mk_letter *l = o->first;
    o->first = l->next;
    if (!o->first)
        o->last = NULL;
    mk_fd_close(&l->m.fd);
    mk_mem_free(l);
}

mk_err mk_outbox_send(struct mk_outbox *o, int end, const struct mk_control_message *m)
{
    mk_err e = o->first ? -EAGAIN : mk_control_send(end, m);
    return e == -EAGAIN ? keep(o, m) : e;
}

mk_err mk_outbox_flush(struct mk_outbox *o, int end)
{
    while (o->first) {
        if (mk_control_send(end, &o->first->m) == -EAGAIN)
            return -EAGAIN;
        drop_first(o);
    }
    return 0;
}

void mk_outbox_clear(struct mk_outbox *o)
{
    while (o->first)
        drop_first(o);
}
