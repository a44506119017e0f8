/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose section table lacks the size of the struct that it fills. */
#include <monkey/plugin.h>

struct settings {
    mk_str name;
};

static const struct mk_conf_key keys[] = {
    {.name = "Name", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, name)}};
static const struct mk_conf_table table = {.section = "BAD_KEY", .keys = keys, .n = 1};
static const struct mk_conf_table *const tables[] = {&table, NULL};

MK_PLUGIN(bad_key) = {MK_PLUGIN_HEAD, .name = "bad-key", .sections = tables};
