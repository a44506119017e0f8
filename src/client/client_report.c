/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to an exchange, as the logs and the handler of a request see it. */
#include <errno.h>
#include <monkey/request.h>
#include <monkey/text.h>

#include "client/client_type.h"

void mk_client_report(const struct mk_client *c, struct mk_request *request)
{
    mk_str server = mk_client_server_name(c), name = mk_upstream_name(c->to);
    if (server.p && !mk_str_eq(server, name))
        mk_request_log(request, MK_LOG_ERROR, "upstream %.*s, server %.*s: %s", MK_STR_ARG(name),
                       MK_STR_ARG(server), mk_client_problem(c));
    else
        mk_request_log(request, MK_LOG_ERROR, "upstream %.*s: %s", MK_STR_ARG(name), mk_client_problem(c));
}

int mk_client_await(struct mk_client *c, struct mk_request *request)
{
    int e = mk_client_head(c);
    if (e == -EAGAIN)
        mk_client_resume(c);
    else if (e < 0)
        mk_client_report(c, request);
    return e;
}
