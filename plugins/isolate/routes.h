/* SPDX-License-Identifier: Apache-2.0 */
/* The routes inside a service, which the process that checks the service reports. */
#ifndef ISOLATE_ROUTES_H
#define ISOLATE_ROUTES_H

#include <monkey/config.h>

struct isolate_group;

/* A route in the form of mk_config_declare_route(). */
struct isolate_route {
    struct isolate_route *next;
    mk_str host, route, where;
};

/* Creates the file for the report, whose size the service cannot change. Returns a descriptor, or a negative
 * errno value. */
int isolate_routes_create_file(void);
/* Sets group->routes to the routes of the report, in the order of the file; NULL: none, or out of memory. The
 * service may have forged the report: skips invalid lines. Returns false after reporting a report that is too
 * long. */
bool isolate_routes_read(struct mk_config *config, struct isolate_group *group, int fd);
/* In host(): declares the routes of a group that handles the whole host. Returns false after reporting routes
 * that another service has, too; reports only the first ten of them. */
bool isolate_routes_declare(struct mk_config *config, const struct isolate_group *group);

#endif
