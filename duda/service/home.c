/* SPDX-License-Identifier: Apache-2.0 */
#include "service/home.h"

#include <errno.h>

static const struct mk_plugin *self;

void duda_home_set(const struct mk_plugin *plugin)
{
    if (!self)
        self = plugin;
}

struct duda_home *duda_home(struct mk_worker *worker)
{
    return mk_worker_data(worker, self);
}

int duda_home_start(struct mk_worker *worker)
{
    struct duda_home *home = mk_mem_zalloc(1, sizeof *home);
    if (!home)
        return -ENOMEM;
    home->worker = worker;
    mk_worker_set_data(worker, self, home);
    return 0;
}

void duda_home_stop(struct mk_worker *worker)
{
    struct duda_home *home = duda_home(worker);
    for (size_t i = 0; home && i < MK_LEN(home->stacks); i++)
        duda_stacks_free(home->stacks[i]);
    mk_mem_free(home);
    mk_worker_set_data(worker, self, NULL);
}
