/* SPDX-License-Identifier: Apache-2.0 */
/* The lines before the first empty line are routes; the lines after it are paths. An accepted route matches
 * only its pattern, and each allowed method of a path has a route. */
#include <monkey/router.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALLOW_MAX = 64 * (MK_ROUTER_PATTERN_MAX + 2) };

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void check_params(const struct mk_router_match *match, mk_str path)
{
    const char *at = path.p;
    expect(match->n <= MK_ROUTER_PARAMS_MAX);
    for (size_t i = 0; i < match->n; i++) {
        const struct mk_router_param *p = &match->params[i];
        expect(p->value.p > at && p->value.p + p->value.len <= path.p + path.len);
        expect(p->value.p[-1] == '/');
        expect(p->type == MK_ROUTER_REST || mk_str_find(p->value, '/') == MK_STR_NONE);
        at = p->value.p + p->value.len;
    }
}

static void check_allowed(const struct mk_router *router, uint64_t methods, mk_str path)
{
    struct mk_buf allow = mk_buf_growing(ALLOW_MAX);
    struct mk_router_match match;
    mk_router_allow(router, methods, &allow);
    expect(!allow.failed && allow.len > 0);
    for (mk_str rest = mk_buf_str(&allow); rest.p;) {
        mk_str method = mk_str_trim(mk_str_cut(&rest, ','));
        expect(mk_router_find(router, method, path, &match) == MK_ROUTER_FOUND);
    }
    mk_buf_free(&allow);
}

static void search(const struct mk_router *router, mk_str path)
{
    static const mk_str methods[] = {MK_STR_INIT("GET"), MK_STR_INIT("HEAD"), MK_STR_INIT("X")};
    for (size_t i = 0; i < MK_LEN(methods); i++) {
        struct mk_router_match match;
        enum mk_router_result result = mk_router_find(router, methods[i], path, &match);
        if (result == MK_ROUTER_FOUND)
            check_params(&match, path);
        else
            expect(match.n == 0 && match.route == SIZE_MAX &&
                   (match.allowed != 0) == (result == MK_ROUTER_NO_METHOD));
        if (result == MK_ROUTER_NO_METHOD)
            check_allowed(router, match.allowed, path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_str text = mk_str_of(size ? (const char *)data : "", size);
    struct mk_router *router = mk_router_new();
    expect(router != NULL);
    while (text.p) {
        mk_str line = mk_str_cut(&text, '\n');
        if (line.len == 0)
            break;
        int err = mk_router_add(router, line, NULL, MK_STR("here"));
        expect((err == 0) == (mk_router_error(router).len == 0));
    }
    while (text.p)
        search(router, mk_str_cut(&text, '\n'));
    mk_router_free(router);
    return 0;
}
