/* SPDX-License-Identifier: Apache-2.0 */
#include "server/reload_orders.h"

bool mk_reload_orders_add(struct mk_reload_orders *o, uint64_t id)
{
    if (id && o->n == MK_RELOAD_ORDERS_MAX)
        return false;
    if (id)
        o->ids[o->n++] = id;
    return true;
}

void mk_reload_orders_finish(struct mk_reload_orders *o, struct mk_reload_stats *stats, bool ok, mk_str text)
{
    for (unsigned i = 0; i < o->n; i++)
        mk_scoreboard_publish_result(stats, o->ids[i], ok, text);
    o->n = 0;
}
