/* SPDX-License-Identifier: Apache-2.0 */
#include "os/local_names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/if.h> /* for IFF_UP */
#include <netinet/in.h>
#include <unistd.h>

enum { LABEL_MAX = 63 };

mk_str mk_local_hostname(struct mk_arena *arena)
{
    char buf[HOST_NAME_MAX + 1] = "";
    if (gethostname(buf, sizeof buf) < 0)
        buf[0] = '\0';
    buf[HOST_NAME_MAX] = '\0';
    return mk_arena_copy(arena, mk_str_from_c(buf));
}

bool mk_local_names_add(struct mk_arena *arena, struct mk_local_names *names, mk_str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (mk_str_eq_nocase(mk_str_from_c(names->at[i]), name))
            return true;
    if (names->n == MK_LOCAL_NAMES_MAX)
        return true;
    char *copy = mk_arena_alloc(arena, name.len + 1);
    if (!copy)
        return false;
    for (size_t i = 0; i < name.len; i++)
        copy[i] = mk_char_lower(name.p[i]);
    copy[name.len] = '\0';
    names->at[names->n++] = copy;
    return true;
}

static bool is_dns_label(mk_str label)
{
    for (size_t i = 0; i < label.len; i++)
        if (!mk_char_is_alpha(label.p[i]) && !mk_char_is_digit(label.p[i]) && label.p[i] != '-' &&
            label.p[i] != '_')
            return false;
    return label.len > 0 && label.len <= LABEL_MAX && label.p[0] != '-' && label.p[label.len - 1] != '-';
}

/* Is it a valid host name? The result of gethostname() may be any text. */
static bool is_hostname(mk_str name)
{
    bool ok = true;
    while (ok && name.p)
        ok = is_dns_label(mk_str_cut(&name, '.'));
    return ok;
}

static bool add_hostname(struct mk_arena *arena, struct mk_local_names *names)
{
    mk_str host = mk_local_hostname(arena);
    if (!host.p)
        return false;
    if (!is_hostname(host))
        return true;
    mk_str label = mk_str_first(host, mk_str_find(host, '.'));
    mk_str local = mk_arena_printf(arena, "%.*s.local", MK_STR_ARG(label));
    return local.p && mk_local_names_add(arena, names, host) && mk_local_names_add(arena, names, label) &&
           mk_local_names_add(arena, names, local);
}

/* Formats an address; writes "" for an address that cannot appear in a URL. */
static void format_address(const struct sockaddr *a, char buf[INET6_ADDRSTRLEN])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    buf[0] = '\0';
    if (a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, buf, INET6_ADDRSTRLEN);
    } else if (a->sa_family == AF_INET6) {
        memcpy(&v6, a, sizeof v6);
        if (!IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr))
            inet_ntop(AF_INET6, &v6.sin6_addr, buf, INET6_ADDRSTRLEN);
    }
}

static bool add_interfaces(struct mk_arena *arena, struct mk_local_names *names)
{
    struct ifaddrs *list = NULL;
    char buf[INET6_ADDRSTRLEN];
    bool ok = true;
    if (getifaddrs(&list) < 0)
        return errno != ENOMEM;
    for (const struct ifaddrs *i = list; ok && i; i = i->ifa_next) {
        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
            continue;
        format_address(i->ifa_addr, buf);
        ok = !buf[0] || mk_local_names_add(arena, names, mk_str_from_c(buf));
    }
    freeifaddrs(list);
    return ok;
}

bool mk_local_names_collect(struct mk_arena *arena, struct mk_local_names *out)
{
    out->n = 0;
    return mk_local_names_add(arena, out, MK_STR("localhost")) && add_hostname(arena, out) &&
           mk_local_names_add(arena, out, MK_STR("127.0.0.1")) &&
           mk_local_names_add(arena, out, MK_STR("::1")) && add_interfaces(arena, out);
}
