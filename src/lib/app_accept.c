/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/app_accept.h"

#include <monkey/connection.h>

#include "lib/app_routes.h"
#include "setup/config.h"

static int load(struct mk_config *c, void **data)
{
    struct mk_app_routes *program = c->generation->embedding->ctx;
    *data = &program->accept_filter;
    return 0;
}

static enum mk_verdict on_accept(struct mk_conn *connection, void *data)
{
    const struct mk_app_accept_filter *f = data;
    return f->accepts(mk_conn_client_addr(connection), f->ctx) ? MK_NEXT : MK_ERROR;
}

const struct mk_plugin mk_app_accept_plugin = {MK_PLUGIN_HEAD, .name = "program-accept",
                                               .help = "The accept filter of the program around the server.",
                                               .load = load, .on_accept = on_accept};
