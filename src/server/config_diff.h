/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two effective configurations as text, with the position of each key, and without secrets. */
#ifndef MK_SERVER_CONFIG_DIFF_H
#define MK_SERVER_CONFIG_DIFF_H

#include "base/arena.h"
#include "base/buf.h"

struct mk_config_generation;

/* A line of an effective configuration, or several lines that set one list. */
struct mk_config_line {
    mk_str text, shown; /* in `shown`, values of the environment are references */
    /* The header of its section, before the names of the host if it belongs to one. */
    mk_str section, section_shown;
    mk_str at; /* FILE:LINE where the configuration sets it, or "default" */
};

struct mk_config_lines {
    struct mk_config_line *at;
    size_t n;
};

/* Lists the lines of the configuration. False: out of memory. The lines live in the arena. */
bool mk_config_diff_lines(const struct mk_config_generation *g, struct mk_arena *arena,
                          struct mk_config_lines *out);

/* Writes the differences as a unified diff whose headers name `a` and `b`. Writes nothing if there are none.
 * Values of the environment are references, and values that are secrets, by the names of their keys, are masked: if only
 * such a value differs, the two lines look alike. False: out of memory. */
bool mk_config_diff_write(const struct mk_config_lines *a, const struct mk_config_lines *b, mk_str a_name,
                          mk_str b_name, struct mk_buf *out);

/* Appends a line with its secrets masked. */
void mk_config_diff_mask(mk_str line, struct mk_buf *out);

#endif
