/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/mailboxes.h"

#include "os/fd.h"
#include "os/fd_passing.h"
#include "setup/plugins.h"

static bool are_wanted(const struct mk_generation *g)
{
    for (size_t i = 0; i < g->n_plugins; i++)
        if (mk_plugins_at(g, i)->object.plugin->on_message)
            return true;
    return false;
}

mk_err mk_mailboxes_open(struct mk_generation *g)
{
    if (!are_wanted(g))
        return 0;
    g->mailboxes = mk_arena_zalloc(&g->arena, g->server.workers, sizeof *g->mailboxes);
    mk_err e = g->mailboxes ? 0 : -ENOMEM;
    for (; g->n_mailboxes < g->server.workers && !e; g->n_mailboxes += !e) {
        struct mk_mailbox *m = &g->mailboxes[g->n_mailboxes];
        e = mk_fd_passing_pair(&m->send_fd, &m->receive_fd);
    }
    return e;
}

void mk_mailboxes_keep(struct mk_generation *g, unsigned index)
{
    for (unsigned i = 0; i < g->n_mailboxes; i++)
        if (i != index)
            mk_fd_close(&g->mailboxes[i].receive_fd);
}

void mk_mailboxes_close(struct mk_generation *g)
{
    for (; g->n_mailboxes; g->n_mailboxes--) {
        mk_fd_close(&g->mailboxes[g->n_mailboxes - 1].send_fd);
        mk_fd_close(&g->mailboxes[g->n_mailboxes - 1].receive_fd);
    }
}
