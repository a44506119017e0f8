/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a compiled service, as its table has them. */
#ifndef DUDA_DEV_INTROSPECT_H
#define DUDA_DEV_INTROSPECT_H

#include "compile.h"

#include <duda/service.h>

enum { DEV_PATTERN_MAX = 2048, DEV_GROUPS_MAX = 8 };

/* A route, with what its groups put ahead of its path; texts live as long as the service is loaded. */
struct dev_route {
    char pattern[DEV_PATTERN_MAX];
    const char *host; /* empty: any */
    const struct duda_route *line;
    const struct duda_route *group; /* the innermost one; NULL: none */
    size_t group_len;               /* how much of the pattern is the group's */
};

struct dev_introspection {
    const struct duda_service *service;
    void *handle;
    struct dev_compile_result built;
};

/* Compiles the source, and loads it. False: reported, and there is nothing to free. */
bool dev_introspect_load(struct dev_introspection *d, const char *command, const char *path);
void dev_introspect_free(struct dev_introspection *d);
/* Calls each() for every route, in the order of the table. */
void dev_introspect_each_route(const struct dev_introspection *d,
                               void (*each)(const struct dev_route *r, void *ctx), void *ctx);

/* A parameter of a pattern. */
struct dev_param {
    mk_str name, type; /* the type of `:id<int>`; "rest" of `*name`; empty: any segment */
};
/* Cuts the next segment; *p is its parameter, with an absent name if it is plain text. False: there are no
 * more. */
bool dev_introspect_next_segment(mk_str *pattern, mk_str *text, struct dev_param *p);

#endif
