/* SPDX-License-Identifier: Apache-2.0 */
#include "web/hooks.h"

/* Is the function at that offset of the plugin there? All of them are pointers to functions. */
static bool has(const struct mk_plugin *plugin, size_t offset)
{
    void (*fn)(void);
    memcpy(&fn, (const char *)plugin + offset, sizeof fn);
    return fn != NULL;
}

static bool build(struct mk_hook_list *list, struct mk_arena *arena, const struct mk_hook *all, size_t n,
                  size_t offset)
{
    size_t wanted = 0;
    *list = (struct mk_hook_list){0};
    for (size_t i = 0; i < n; i++)
        wanted += has(all[i].plugin, offset);
    struct mk_hook *at = wanted ? mk_arena_alloc(arena, wanted * sizeof *at) : NULL;
    if (wanted && !at)
        return false;
    bool backwards = offset == offsetof(struct mk_plugin, on_response);
    for (size_t i = 0; i < n; i++) {
        const struct mk_hook *h = &all[backwards ? n - 1 - i : i];
        if (has(h->plugin, offset))
            at[list->n++] = *h;
    }
    list->at = at;
    return true;
}

bool mk_hooks_build(struct mk_hooks *h, struct mk_arena *arena, const struct mk_hook *all, size_t n)
{
    return build(&h->request, arena, all, n, offsetof(struct mk_plugin, on_request)) &&
           build(&h->response, arena, all, n, offsetof(struct mk_plugin, on_response)) &&
           build(&h->abort, arena, all, n, offsetof(struct mk_plugin, on_abort)) &&
           build(&h->done, arena, all, n, offsetof(struct mk_plugin, on_done)) &&
           build(&h->log, arena, all, n, offsetof(struct mk_plugin, on_log));
}
