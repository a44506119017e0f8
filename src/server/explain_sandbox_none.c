/* SPDX-License-Identifier: Apache-2.0 */
/* A server without `monkey explain --sandbox` (MK_EXPLAIN or MK_FULL_SANDBOX is OFF). */
#include "server/explain_sandbox.h"

bool mk_explain_sandbox_take_option(const char *word, struct mk_explain_request *out)
{
    (void)word, (void)out;
    return false;
}

void mk_explain_sandbox(struct mk_config_generation *g, const struct mk_explain_request *request,
                        struct mk_buf *out)
{
    (void)g, (void)request, (void)out;
}
