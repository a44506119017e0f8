/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain.h"

mk_err mk_explain(struct mk_config_generation *g, mk_str method, mk_str url, struct mk_buf *out)
{
    (void)g, (void)method, (void)url, (void)out;
    return -ENOSYS;
}
