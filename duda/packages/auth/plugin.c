/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <monkey/mem.h>
#include <monkey/text.h>

#include "auth.h"
#include "common/package.h"

MK_PLUGIN_DECLARE(duda_auth);

static int start_auth_in_worker(struct mk_worker *w, void *data)
{
    struct auth_worker *worker = mk_mem_zalloc(1, sizeof *worker);
    (void)data;
    if (!worker)
        return -ENOMEM;
    mk_random(worker->key, sizeof worker->key);
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_auth), worker);
    return 0;
}

static void stop_auth_in_worker(struct mk_worker *w, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(w, &MK_PLUGIN_OF(duda_auth)));
    mk_worker_set_data(w, &MK_PLUGIN_OF(duda_auth), NULL);
}

struct auth_worker *auth_worker_get(struct mk_worker *w)
{
    return mk_worker_data(w, &MK_PLUGIN_OF(duda_auth));
}

PACKAGE_PLUGIN(auth, "Authentication for Duda services.", .worker_start = start_auth_in_worker,
               .worker_stop = stop_auth_in_worker, .needs = PACKAGE_NEEDS("duda"));
