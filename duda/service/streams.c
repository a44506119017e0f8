/* SPDX-License-Identifier: Apache-2.0 */
#include "service/streams.h"

#include <errno.h>

/* Its waits answer what they answer when the client has left; the client sees a proper end, and reconnects. */
static void end(struct duda *d)
{
    d->is_drained = true;
    (void)duda_task_cancel(d, -ECANCELED);
    duda_wake(d);
}

void duda_streams_add(struct duda *d)
{
    struct duda_home *home = d->home;
    d->next_events = home->events;
    d->events_link = &home->events;
    if (home->events)
        home->events->events_link = &d->next_events;
    home->events = d;
    if (home->is_draining)
        end(d);
}

void duda_streams_leave(struct duda *d)
{
    if (!d->events_link)
        return;
    *d->events_link = d->next_events;
    if (d->next_events)
        d->next_events->events_link = d->events_link;
    d->events_link = NULL;
}

void duda_streams_drain(struct duda_home *home)
{
    home->is_draining = true;
    for (struct duda *d = home->events; d; d = d->next_events)
        end(d);
}
