/* SPDX-License-Identifier: Apache-2.0 */
#include "web/hooks.h"

/* Is the hook at that offset of the plugin set? `offset` must be that of a function pointer. */
static bool plugin_has_hook(const struct mk_plugin *plugin, size_t offset)
{
    void (*fn)(void);
    memcpy(&fn, (const char *)plugin + offset, sizeof fn);
    return fn != NULL;
}

static bool build_hook_list(struct mk_hook_list *list, struct mk_arena *arena, const struct mk_hook *all,
                            size_t n, size_t offset)
{
    size_t expected = 0;
    *list = (struct mk_hook_list){0};
    for (size_t i = 0; i < n; i++)
        expected += plugin_has_hook(all[i].plugin, offset);
    struct mk_hook *at = expected ? mk_arena_alloc(arena, expected * sizeof *at) : NULL;
    if (expected && !at)
        return false;
    bool backwards = offset == offsetof(struct mk_plugin, on_response);
    for (size_t i = 0; i < n; i++) {
        const struct mk_hook *h = &all[backwards ? n - 1 - i : i];
        if (plugin_has_hook(h->plugin, offset))
            at[list->n++] = *h;
    }
    list->at = at;
    return true;
}

bool mk_hooks_init(struct mk_hooks *h, struct mk_arena *arena, const struct mk_hook *all, size_t n)
{
    bool has_memory = build_hook_list(&h->request, arena, all, n, offsetof(struct mk_plugin, on_request)) &&
                      build_hook_list(&h->handler, arena, all, n, offsetof(struct mk_plugin, on_handler)) &&
                      build_hook_list(&h->response, arena, all, n, offsetof(struct mk_plugin, on_response)) &&
                      build_hook_list(&h->error, arena, all, n, offsetof(struct mk_plugin, on_error)) &&
                      build_hook_list(&h->abort, arena, all, n, offsetof(struct mk_plugin, on_abort)) &&
                      build_hook_list(&h->done, arena, all, n, offsetof(struct mk_plugin, on_done)) &&
                      build_hook_list(&h->log, arena, all, n, offsetof(struct mk_plugin, on_log));
    h->has_early = h->request.n || h->handler.n;
    return has_memory;
}
