/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain.h"

const struct mk_option *mk_explain_options(size_t *n)
{
    *n = 0;
    return NULL;
}

bool mk_explain_take_options(int *argc, char **argv, struct mk_explain_request *out)
{
    (void)argc, (void)argv;
    *out = (struct mk_explain_request){0};
    return true;
}

mk_err mk_explain(struct mk_config_generation *g, const struct mk_explain_request *request,
                  struct mk_buf *out)
{
    (void)g, (void)request, (void)out;
    return -ENOSYS;
}
