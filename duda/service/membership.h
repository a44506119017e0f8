/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in which rooms of this worker, and what workers tell each other. */
#ifndef DUDA_SERVICE_MEMBERSHIP_H
#define DUDA_SERVICE_MEMBERSHIP_H

#include "service/duda_type.h"
#include "service/rooms.h"

/* Whose rooms they are. */
struct duda_hall {
    struct duda_home *home;
    mk_str scope;
};

/* One more room for the owner of this list. 0, -EALREADY, -EINVAL or -ENOMEM. */
int duda_membership_begin(struct duda_hall hall, struct duda_guest **list, mk_str room, void *owner,
                          void (*hear)(void *owner, struct duda_news *news));
void duda_membership_leave(struct duda_hall hall, struct duda_guest **list, mk_str room);
/* Leaves all rooms of the list. */
void duda_membership_end(struct duda_home *home, struct duda_guest **list);

/* A room as the service named it. */
mk_str duda_membership_name(mk_str scope, mk_str full_name);

/* What another worker said. */
void duda_membership_hear(struct duda_home *home, mk_str message);

#endif
