/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain.h"

#include "server/plugin_list.h"

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
    return -EINVAL;
}

void mk_explain_config(const struct mk_config_generation *g, struct mk_buf *out)
{
    (void)g, (void)out;
}

void mk_plugin_list_write_all(struct mk_buf *out)
{
    (void)out;
}

void mk_plugin_list_write_loaded(const struct mk_config_generation *g, struct mk_buf *out)
{
    (void)g, (void)out;
}
