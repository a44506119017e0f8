/* SPDX-License-Identifier: Apache-2.0 */
/* The program as a plugin: its routes. */
#ifndef MK_LIB_PROGRAM_H
#define MK_LIB_PROGRAM_H

#include <monkey/server.h>

#include "base/err.h"

struct mk_program_scope;

/* A zeroed one has no routes. */
struct mk_program {
    struct mk_program_scope *first;
};

/* What the configuration loads for it. */
extern const struct mk_plugin mk_program_plugin;

/* `host` is the number of the host, from 1, among those of the program; 0: all. Else as mk_router_add(), and
 * why it failed is in *why. */
mk_err mk_program_add(struct mk_program *p, mk_str what, unsigned host, mk_server_fn *fn, void *data,
                      struct mk_buf *why) MK_MUST_USE;
void mk_program_free(struct mk_program *p);

#endif
