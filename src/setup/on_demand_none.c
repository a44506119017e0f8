/* SPDX-License-Identifier: Apache-2.0 */
/* A server without certificates on demand. */
#include <monkey/tls.h>

#include "setup/config.h"

void mk_config_tls_on_demand(
    struct mk_config *c, const char *folder,
    int (*request)(struct mk_worker *worker, mk_str name, const struct mk_addr *client,
                   struct mk_tls_waiter *waiter, void *ctx),
    void (*cancel)(struct mk_worker *worker, struct mk_tls_waiter *waiter, void *ctx), void *ctx)
{
    (void)folder, (void)request, (void)cancel, (void)ctx;
    mk_config_error(c, NULL, NULL, "this build has no certificates on demand (MK_ON_DEMAND)");
}

void mk_tls_waiter_resume(struct mk_tls_waiter *waiter, bool is_issued)
{
    (void)waiter, (void)is_issued;
}
