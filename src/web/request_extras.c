/* SPDX-License-Identifier: Apache-2.0 */
/* Properties that few requests have: allocated on demand. */
#include "base/arena.h"
#include "web/request_type.h"

struct mk_request_extras *mk_request_get_extras(struct mk_request *r)
{
    if (r->extras)
        return r->extras;
    struct mk_request_extras *extras = mk_arena_alloc(r->arena, sizeof *extras);
    if (extras)
        *extras = (struct mk_request_extras){.id = MK_STR_NULL};
    return r->extras = extras;
}
