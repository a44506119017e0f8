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
static bool on_interface(const struct mk_addr *listener, const struct ifaddrs *i, struct mk_addr *out)
{
    bool usable = i->ifa_addr && (i->ifa_flags & IFF_UP) && i->ifa_addr->sa_family == listener->any.sa_family;
    if (!usable)
        return false;
    *out = *listener;
    if (out->any.sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, i->ifa_addr, sizeof v4);
        out->v4.sin_addr = v4.sin_addr;
        return true;
    }
    struct sockaddr_in6 v6;
    memcpy(&v6, i->ifa_addr, sizeof v6);
    out->v6.sin6_addr = v6.sin6_addr;
    return !IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr); /* useless in a URL without its zone */
}

static void write_all_interfaces(const struct mk_addr *listener, bool tls, struct mk_buf *out)
{
    struct ifaddrs *list = NULL;
    struct mk_addr a;
    if (getifaddrs(&list) < 0)
        write_url(listener, tls, out);
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (on_interface(listener, i, &a))
            write_url(&a, tls, out);
    freeifaddrs(list);
}

static void write_any(const struct mk_listener *one, bool tls, struct mk_buf *out)
{
    struct mk_addr v4;
    write_all_interfaces(&one->addr, tls, out);
    if (!mk_sock_is_dual(one->fds[0]) || mk_addr_parse(MK_STR("0.0.0.0:0"), MK_ABSENT, &v4))
        return;
    mk_addr_set_port(&v4, mk_addr_port(&one->addr));
    write_all_interfaces(&v4, tls, out);
}

void mk_urls_write(const struct mk_listeners *listeners, const struct mk_listens *wanted, struct mk_buf *out)
{
    for (unsigned i = 0; i < listeners->n; i++) {
        const struct mk_listener *one = &listeners->at[i];
        const struct mk_listen *as = mk_listener_listen(one, wanted);
        bool tls = as && as->tls;
        if (mk_addr_is_any(&one->addr))
            write_any(one, tls, out);
        else
            write_url(&one->addr, tls, out);
    }
}
