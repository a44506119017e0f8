/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks that a host calls at each fixed point of a request. Only existing hooks are listed, so that
 * missing hooks cost nothing. */
#ifndef MK_WEB_HOOKS_H
#define MK_WEB_HOOKS_H

#include <monkey/plugin.h>

#include "base/arena.h"

struct mk_hook {
    const struct mk_plugin *plugin;
    void *data; /* argument passed to the plugin's functions */
};

/* Do both pointers refer to the same plugin? The server may use a copy of the plugin's struct; the copy has
 * the same name pointer. */
static inline bool mk_hook_is_of_plugin(const struct mk_plugin *a, const struct mk_plugin *b)
{
    return a->name == b->name;
}

struct mk_hook_list {
    const struct mk_hook *at;
    size_t n;
};

struct mk_hooks {
    bool has_early; /* hooks to call before the routes: on_request or on_handler */
    struct mk_hook_list request, handler, response, error, abort, done, log;
};

/* `all`: the hooks in the order of on_request; on_response runs in reverse order. False: out of memory. */
bool mk_hooks_init(struct mk_hooks *h, struct mk_arena *arena, const struct mk_hook *all,
                   size_t n) MK_MUST_USE;

#endif
