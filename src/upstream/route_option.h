/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a route to an upstream, read by a table: `name=value`, or a name alone. */
#ifndef MK_UPSTREAM_ROUTE_OPTION_H
#define MK_UPSTREAM_ROUTE_OPTION_H

#include <monkey/upstream.h>

/* An option as the configuration has it. */
struct mk_route_option {
    const struct mk_conf_ctx *spot;
    mk_str word, value;
    void *route;
};

/* An option that a route may have. One of three kinds: `read` stores its value; one of `choices`, whose index is stored; or
 * neither: the name alone, which stores true. */
struct mk_route_option_type {
    const char *name;
    size_t offset, size; /* of the member that is stored: a bool or an enum */
    const char *const *choices;
    size_t n_choices;
    bool (*read)(const struct mk_route_option *o);
};

#define MK_ROUTE_OPTION_FLAG(type, member)                                                                   \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define MK_ROUTE_OPTION_CHOICE(type, member, choices_)                                                       \
    MK_ROUTE_OPTION_FLAG(type, member), .choices = (choices_), .n_choices = MK_LEN(choices_)

/* Reports "expected ...", and returns false. */
bool mk_route_option_fail(const struct mk_route_option *o, const char *expected);

/* Reads options by the table, and those of MK_UPSTREAM_LIMITS_FORM. False: one is wrong, and is reported. */
bool mk_route_options_read(const struct mk_conf_ctx *spot, mk_str words,
                           const struct mk_route_option_type *types, size_t n, void *route,
                           struct mk_upstream_limits *limits);

#endif
