/* SPDX-License-Identifier: Apache-2.0 */
#include "destination.h"

#include "target.h"

/* A path alone means this server. Ports are not compared: a proxy in front may have changed that of Host. */
static bool is_elsewhere(const struct mk_request *request, mk_str host)
{
    mk_str ours = mk_request_host(request);
    return host.p && ours.p && !mk_str_eq_nocase(host, ours);
}

/* Without scheme and host: the server behind need not know those that the client uses. */
unsigned proxy_destination_make(struct mk_request *request, const struct proxy_route *route, mk_str *value)
{
    struct mk_destination to;
    bool passes = route->is_part || (route->raw_paths && !route->path.p);
    unsigned status = passes ? 0 : mk_request_destination(request, &to);
    *value = mk_str_of(NULL, 0);
    if (passes || status || !to.path.p)
        return status;
    if (is_elsewhere(request, to.host))
        return 502;
    *value = to.uri;
    if (!route->path.p)
        return 0;
    if (!proxy_target_is_below(route, to.uri) || proxy_target_hides_slash(route, to.path))
        return 502;
    *value = proxy_target_replace(request, route, to.uri);
    return value->p ? 0 : 503;
}
