/* SPDX-License-Identifier: Apache-2.0 */
/* Table-driven parser for the options of a route to an upstream: `name=value`, or a bare name. */
#ifndef MK_UPSTREAM_ROUTE_OPTION_H
#define MK_UPSTREAM_ROUTE_OPTION_H

#include <monkey/upstream.h>

/* An option as written in the configuration. */
struct mk_route_option {
    const struct mk_conf_ctx *ctx;
    mk_str word, value;
    void *route;
};

/* Describes an option. `read` stores its value; or `choices` lists its values, and the index is stored; with
 * neither, the option is a bare name, and true is stored. */
struct mk_route_option_type {
    const char *name;
    size_t offset, size; /* offset and size of the target member: a bool or an enum */
    const char *const *choices;
    size_t n_choices;
    bool (*read)(const struct mk_route_option *o);
};

#define MK_ROUTE_OPTION_FLAG(type, member)                                                                   \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define MK_ROUTE_OPTION_CHOICE(type, member, choices_)                                                       \
    MK_ROUTE_OPTION_FLAG(type, member), .choices = (choices_), .n_choices = MK_LEN(choices_)

/* A set of error statuses, 400 to 599: one bit each. */
struct mk_route_statuses {
    uint64_t bits[4];
};

static inline bool mk_route_statuses_have(const struct mk_route_statuses *s, unsigned status)
{
    return status >= 400 && status < 600 && s->bits[(status - 400) / 64] >> ((status - 400) % 64) & 1;
}

/* Parses `on`, `off`, or a list such as `404,5xx` into a set, a pointer at the member of the route: NULL for
 * `off`. */
bool mk_route_option_read_statuses(const struct mk_route_option *o, const struct mk_route_statuses **out);

/* Reports "expected ...", and returns false. */
bool mk_route_option_fail(const struct mk_route_option *o, const char *expected);

/* Parses the options of the table and of MK_UPSTREAM_LIMITS_SYNTAX. False: an option is invalid, and the
 * error was reported. */
bool mk_route_options_read(const struct mk_conf_ctx *ctx, mk_str words,
                           const struct mk_route_option_type *types, size_t n, void *route,
                           struct mk_upstream_limits *limits);

#endif
