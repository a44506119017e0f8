/* SPDX-License-Identifier: Apache-2.0 */
/* For tests in which each case has its own response `r` in the memory of `arena`. */
#ifndef MK_UNIT_WEB_RESPONSE_CASE_H
#define MK_UNIT_WEB_RESPONSE_CASE_H

#include "unit/fixtures.h"
#include "unit/test.h"
#include "web/response.h"

static struct mk_arena arena;
static struct mk_response r;

static inline void setup(void)
{
    arena_setup(&arena);
    mk_response_init(&r, &arena);
}

static inline void teardown(void)
{
    mk_response_body_fini(&r.content);
}

static inline int add(const char *name, const char *value)
{
    return mk_response_add_header(&r, mk_str_from_c(name), mk_str_from_c(value));
}

#endif
