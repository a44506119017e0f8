/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

int show_page(struct duda_ctx *d, const char *name, struct duda_value page)
{
    return duda_render(d, name, duda_value_members({"page", page}));
}

DUDA_SERVICE(tracker, DUDA_GROUP("", issues, "The issues."));
