/* SPDX-License-Identifier: Apache-2.0 */
#include "server/urls.h"

#include <ifaddrs.h>
#include <net/if.h>

#include "os/sock.h"

static void write_url(const struct mk_sockaddr *a, bool tls, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("  "));
    if (a->any.sa_family != AF_UNIX)
        mk_buf_add(out, tls ? MK_STR("https://") : MK_STR("http://"));
    mk_sockaddr_format(a, out);
    mk_buf_add(out, a->any.sa_family == AF_UNIX ? MK_STR("\n") : MK_STR("/\n"));
}

/* Stores the address of the interface, with the listener's port, in *out. False: no URL can contain the
 * address. */
static bool interface_addr(const struct mk_sockaddr *listener, bool dual, const struct ifaddrs *i,
                           struct mk_sockaddr *out)
{
    const struct sockaddr *its = i->ifa_addr;
    bool usable = its && (i->ifa_flags & IFF_UP) &&
                  (its->sa_family == listener->any.sa_family || (dual && its->sa_family == AF_INET));
    if (!usable)
        return false;
    out->len = its->sa_family == AF_INET ? sizeof out->v4 : sizeof out->v6;
    memcpy(&out->any, its, out->len);
    mk_sockaddr_set_port(out, mk_sockaddr_port(listener));
    /* a link-local address is unusable in a URL without its zone */
    return its->sa_family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&out->v6.sin6_addr);
}

/* Writes a line for all addresses: if the service starts before the network is up, only this line shows where
 * it listens. */
static void write_wildcard_line(const struct mk_listener *listener, bool dual, bool has_urls,
                                struct mk_buf *out)
{
    bool is_v4 = listener->addr.any.sa_family == AF_INET;
    mk_buf_addf(out, "  all %saddresses, port %u%s\n",
                dual    ? ""
                : is_v4 ? "IPv4 "
                        : "IPv6 ",
                mk_sockaddr_port(&listener->addr), has_urls ? ":" : "");
}

static void write_all_interfaces(const struct mk_listener *listener, bool tls, struct mk_buf *out)
{
    struct ifaddrs *list = NULL;
    struct mk_sockaddr a;
    struct mk_buf urls = mk_buf_growing(1 << 20);
    bool dual = mk_sock_is_dual_stack(listener->fds[0]);
    (void)!getifaddrs(&list); /* after an error, the list is empty */
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (interface_addr(&listener->addr, dual, i, &a))
            write_url(&a, tls, &urls);
    freeifaddrs(list);
    write_wildcard_line(listener, dual, urls.len, out);
    mk_buf_add(out, mk_buf_str(&urls));
    mk_buf_free(&urls);
}

void mk_urls_write(const struct mk_listeners *listeners, const struct mk_listens *expected,
                   struct mk_buf *out)
{
    for (unsigned i = 0; i < listeners->n; i++) {
        const struct mk_listener *one = &listeners->at[i];
        const struct mk_listen *as = mk_listener_find_listen(one, expected);
        bool tls = as && as->tls;
        if (mk_sockaddr_is_any(&one->addr))
            write_all_interfaces(one, tls, out);
        else
            write_url(&one->addr, tls, out);
    }
}
