/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration that grows line by line, in any order: sections of the server, then hosts with theirs. */
#ifndef MK_LIB_CONFIG_BUILDER_H
#define MK_LIB_CONFIG_BUILDER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct mk_config_builder_section;

/* A zeroed one is empty. */
struct mk_config_builder {
    struct mk_config_builder_section *first, *last;
    unsigned n_hosts; /* sections of hosts are those of the last one; 0: there is none */
};

void mk_config_builder_free(struct mk_config_builder *l);

/* Adds a line to the last section of that name of the server or the last host; the first line begins it.
 * -EINVAL: what a line cannot hold, such as a control character; -ENOMEM. */
mk_err mk_config_builder_set(struct mk_config_builder *l, mk_str section, mk_str key,
                             mk_str value) MK_MUST_USE;
/* Begins a section; [HOST] begins a host. */
mk_err mk_config_builder_begin_section(struct mk_config_builder *l, mk_str section) MK_MUST_USE;

/* As a configuration file. */
void mk_config_builder_print(const struct mk_config_builder *l, struct mk_buf *out);

#endif
