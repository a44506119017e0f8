/* SPDX-License-Identifier: Apache-2.0 */
#include "server/control_queue.h"

#include <fcntl.h>

#include "base/mem.h"
#include "os/fd.h"

struct mk_control_queue_entry {
    struct mk_control_queue_entry *next;
    struct mk_control_message m;
    char text[];
};

static mk_err enqueue_message(struct mk_control_queue *o, const struct mk_control_message *m)
{
    struct mk_control_queue_entry *l = mk_mem_zalloc(1, sizeof *l + m->text.len);
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

static void drop_first_message(struct mk_control_queue *o)
{
    struct mk_control_queue_entry *l = o->first;
    o->first = l->next;
    if (!o->first)
        o->last = NULL;
    mk_fd_close(&l->m.fd);
    mk_mem_free(l);
}

mk_err mk_control_queue_send(struct mk_control_queue *o, int end, const struct mk_control_message *m)
{
    mk_err e = o->first ? -EAGAIN : mk_control_send(end, m);
    return e == -EAGAIN ? enqueue_message(o, m) : e;
}

mk_err mk_control_queue_flush(struct mk_control_queue *o, int end)
{
    while (o->first) {
        if (mk_control_send(end, &o->first->m) == -EAGAIN)
            return -EAGAIN;
        drop_first_message(o);
    }
    return 0;
}

void mk_control_queue_clear(struct mk_control_queue *o)
{
    while (o->first)
        drop_first_message(o);
}
