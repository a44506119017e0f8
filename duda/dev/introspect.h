/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the routes of a compiled service from its table. */
#ifndef DUDA_DEV_INTROSPECT_H
#define DUDA_DEV_INTROSPECT_H

#include "compile.h"
#include "service_files.h"

#include <duda/service.h>

enum { DEV_PATTERN_MAX = 2048, DEV_GROUPS_MAX = 8, DEV_GUARDS_MAX = 8 };

/* A route with the prefixes of its groups; strings live as long as the service is loaded. */
struct dev_route {
    char pattern[DEV_PATTERN_MAX];
    const char *host; /* empty: any host */
    const struct duda_route *line;
    const struct duda_route *group;  /* the innermost group; NULL: none */
    size_t group_len;                /* length of the group prefix in the pattern */
    const char *security;            /* see struct duda_route; NULL: none is documented */
    bool security_has_status;        /* a DUDA_REQUIRE() entry set `security`: `guards` has its status */
    bool has_authentication;         /* `.auth` of the route or of a group */
    bool has_authorization;          /* with `.authorize` */
    bool has_rate;                   /* `.rate` of the route or of a group */
    unsigned guards[DEV_GUARDS_MAX]; /* statuses that DUDA_REQUIRE() entries may send */
    size_t n_guards;
    bool sends_problems; /* the last DUDA_ERROR() is duda_error_problem() */
};

struct dev_introspection {
    const struct duda_service *service;
    void *handle;
    struct dev_compile_result built;
};

/* Compiles and loads the source. On failure, reports the error and returns false; there is then nothing to
 * free. */
bool dev_introspect_load(struct dev_introspection *d, const char *command,
                         const struct dev_service_words *words);
void dev_introspect_free(struct dev_introspection *d);
/* Calls each() for every route, in table order. */
void dev_introspect_each_route(const struct dev_introspection *d,
                               void (*each)(const struct dev_route *r, void *ctx), void *ctx);

/* A parameter in the path of a route. */
struct dev_param {
    mk_str name, type; /* the type of `:id<int>`; "rest" for `*name`; empty: any segment */
};
/* Takes the next segment off the pattern. *p is its parameter, with an absent name for literal text. Returns
 * false if there are no more segments. */
bool dev_introspect_next_segment(mk_str *pattern, mk_str *text, struct dev_param *p);

#endif
