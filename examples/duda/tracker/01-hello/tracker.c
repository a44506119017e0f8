/* SPDX-License-Identifier: Apache-2.0 */
#include <duda.h>

static int home(struct duda_ctx *d)
{
    return duda_printf(d, "hello %s\n", duda_query_or(d, "name", "world"));
}

static int show(struct duda_ctx *d)
{
    int64_t id;
    if (!duda_param_int(d, "id", &id) || id > 2)
        return 404;
    return duda_printf(d, "This is issue %lld.\n", (long long)id);
}

DUDA_SERVICE(tracker, DUDA_GET("/", home, "Greets."), DUDA_GET("/issues/:id<int>", show, "Shows an issue."));
