/* SPDX-License-Identifier: Apache-2.0 */
#include "allowed_hosts.h"

#include <monkey/addr.h>

static bool host_list_contains(mk_str host, mk_str more)
{
    while (more.len) {
        size_t n = 0;
        while (n < more.len && more.p[n] != ',' && more.p[n] != ' ')
            n++;
        if (n && mk_str_eq_nocase(host, mk_str_first(more, n)))
            return true;
        more = mk_str_skip(more, n < more.len ? n + 1 : n);
    }
    return false;
}

bool dev_allowed_hosts_contain(mk_str host, mk_str more)
{
    static const mk_str local = MK_STR_INIT("localhost"), below = MK_STR_INIT(".localhost");
    struct mk_addr address;
    if (mk_str_ends(host, MK_STR("."))) /* trailing dot of a fully qualified name */
        host = mk_str_first(host, host.len - 1);
    size_t from = host.len > below.len ? host.len - below.len : host.len;
    return host.len == 0 || mk_str_eq_nocase(host, local) ||
           mk_str_eq_nocase(mk_str_skip(host, from), below) || mk_addr_parse(host, &address) ||
           host_list_contains(host, more);
}
