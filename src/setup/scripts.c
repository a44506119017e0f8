/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/scripts.h"

/* Of "*.py", and of the pattern of paths that go on after such a name. Absent for another pattern. */
static mk_str ending_of(mk_str pattern)
{
    if (mk_str_ends(pattern, MK_STR("/*")))
        pattern.len -= 2;
    size_t dot = mk_str_find_last(pattern, '.');
    if (dot == MK_STR_NONE || dot == 0 || pattern.p[dot - 1] != '*')
        return MK_ABSENT;
    mk_str ending = mk_str_skip(pattern, dot);
    for (size_t i = 1; i < ending.len; i++)
        if (!mk_char_is_alpha(ending.p[i]) && !mk_char_is_digit(ending.p[i]))
            return MK_ABSENT;
    return ending.len > 1 ? ending : MK_ABSENT;
}

/* A handler of the server itself runs nothing. */
static bool runs_programs(const struct mk_route *route)
{
    return route && route->plugin;
}

/* A fallback that is no page but a program gets every other path as well. */
static bool find_controller(struct mk_arena *arena, const struct mk_host *host, mk_str *name)
{
    mk_str path = mk_arena_printf(arena, "/%.*s", MK_STR_ARG(host->fallback));
    if (path.p && host->fallback.len && runs_programs(mk_host_route(host, path)))
        *name = host->fallback;
    return path.p;
}

bool mk_scripts_find(struct mk_arena *arena, struct mk_host *host)
{
    mk_str *endings = mk_arena_zalloc(arena, host->n_routes + 1, sizeof *endings);
    size_t n = 0;
    for (const struct mk_route *r = host->routes; endings && r < host->routes + host->n_routes; r++) {
        mk_str ending = r->regex ? MK_ABSENT : ending_of(r->pattern.text);
        if (ending.p && runs_programs(r))
            endings[n++] = ending;
    }
    host->scripts = (struct mk_path_scripts){.endings = endings, .n = n};
    return endings && find_controller(arena, host, &host->scripts.name);
}
