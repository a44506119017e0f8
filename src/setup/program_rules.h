/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs a worker may start, as its spawner checks it. */
#ifndef MK_SETUP_PROGRAM_RULES_H
#define MK_SETUP_PROGRAM_RULES_H

#include "setup/config_generation_type.h"

/* A generation refers to these functions through a pointer, so that a program without plugins that start programs does not
 * contain them. */
struct mk_program_rules {
    /* Does the worker with this index start programs at all? */
    bool (*need_spawner)(const struct mk_config_generation *g, unsigned worker);
    /* May the worker with this index start the program argv[0] with these arguments and variables? */
    bool (*allow)(const struct mk_config_generation *g, unsigned worker, char *const *argv,
                  char *const *envp);
};

extern const struct mk_program_rules mk_program_rules;

#endif
