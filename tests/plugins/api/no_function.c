/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function that the server does not have. */
#include <monkey/plugin.h>

int mk_there_is_no_such_thing(void);

static int load(struct mk_config *config, void **data)
{
    (void)config, (void)data;
    return mk_there_is_no_such_thing();
}

MK_PLUGIN(no_function) = {MK_PLUGIN_HEAD, .name = "no-function", .load = load};
