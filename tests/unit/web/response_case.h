/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which each case has its own response `r` in the memory of `arena`. */
#ifndef MK_UNIT_WEB_RESPONSE_CASE_H
#define MK_UNIT_WEB_RESPONSE_CASE_H

#include "unit/test.h"
#include "web/response.h"

static struct mk_arena arena;
static struct mk_response r;

static inline int start(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL);
    mk_response_init(&r, &arena);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    mk_response_body_fini(&r.content);
    mk_arena_fini(&arena);
    return 0;
}

static inline int add(const char *name, const char *value)
{
    return mk_response_add_header(&r, mk_str_from_c(name), mk_str_from_c(value));
}

#endif
