/* SPDX-License-Identifier: Apache-2.0 */
#include <monkey/request.h>

#include "upstream/client_type.h"

void mk_client_report(const struct mk_client *c, struct mk_request *request)
{
    mk_str server = mk_client_server_name(c);
    mk_request_log(request, MK_LOG_ERROR, "upstream %.*s, server %.*s: %s",
                   MK_STR_ARG(mk_upstream_name(c->to)), MK_STR_ARG(server.p ? server : MK_STR("none")),
                   mk_client_problem(c));
}
