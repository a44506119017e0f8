/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a configuration from lines in any order: first the sections of the server, then each host with its
 * sections. */
#ifndef MK_LIB_CONFIG_BUILDER_H
#define MK_LIB_CONFIG_BUILDER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "conf/tree.h"

struct mk_config_builder_section;

/* Zeroed: empty. */
struct mk_config_builder {
    struct mk_config_builder_section *first, *last;
    unsigned n_hosts; /* host sections belong to the last host; 0: none */
};

void mk_config_builder_free(struct mk_config_builder *l);

/* Adds a line to the last section with that name, in the server or in the last host; creates the section if
 * needed. -EINVAL: invalid text, such as a control character; -ENOMEM. */
mk_err mk_config_builder_set(struct mk_config_builder *l, mk_str section, mk_str key,
                             mk_str value) MK_MUST_USE;
/* Starts a section; [HOST] starts a host. */
mk_err mk_config_builder_begin_section(struct mk_config_builder *l, mk_str section) MK_MUST_USE;

/* Appends the sections and lines of a struct mk_config_builder to `tree`. The lines must contain no references
 * to expand. */
mk_err mk_config_builder_fill_tree(struct mk_conf_tree *tree, struct mk_arena *arena,
                                   const void *builder) MK_MUST_USE;

/* Prints the configuration in the format of a configuration file. */
void mk_config_builder_print(const struct mk_config_builder *l, struct mk_buf *out);

#endif
