/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/urls.h"

#include <ifaddrs.h>
#include <net/if.h>

#include "os/sock.h"

static void write_url(const struct mk_addr *a, bool tls, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("  "));
    if (a->any.sa_family != AF_UNIX)
        mk_buf_add(out, tls ? MK_STR("https://") : MK_STR("http://"));
    mk_addr_print(a, out);
    mk_buf_add(out, a->any.sa_family == AF_UNIX ? MK_STR("\n") : MK_STR("/\n"));
}

/* The address of an interface, with the port of the listener. */
static bool on_interface(const struct mk_addr *listener, bool dual, const struct ifaddrs *i,
                         struct mk_addr *out)
{
    const struct sockaddr *its = i->ifa_addr;
    bool usable = its && (i->ifa_flags & IFF_UP) &&
                  (its->sa_family == listener->any.sa_family || (dual && its->sa_family == AF_INET));
    if (!usable)
        return false;
    out->len = its->sa_family == AF_INET ? sizeof out->v4 : sizeof out->v6;
    memcpy(&out->any, its, out->len);
    mk_addr_set_port(out, mk_addr_port(listener));
    /* link-local ones are useless in a URL without their zone */
    return its->sa_family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&out->v6.sin6_addr);
}

static void write_all_interfaces(const struct mk_listener *listener, bool tls, struct mk_buf *out)
{
    struct ifaddrs *list = NULL;
    struct mk_addr a;
    bool dual = mk_sock_is_dual(listener->fds[0]);
    if (getifaddrs(&list) < 0)
        write_url(&listener->addr, tls, out);
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (on_interface(&listener->addr, dual, i, &a))
            write_url(&a, tls, out);
    freeifaddrs(list);
}

void mk_urls_write(const struct mk_listeners *listeners, const struct mk_listens *wanted, struct mk_buf *out)
{
    for (unsigned i = 0; i < listeners->n; i++) {
        const struct mk_listener *one = &listeners->at[i];
        const struct mk_listen *as = mk_listener_listen(one, wanted);
        bool tls = as && as->tls;
        if (mk_addr_is_any(&one->addr))
            write_all_interfaces(one, tls, out);
        else
            write_url(&one->addr, tls, out);
    }
}
