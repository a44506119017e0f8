/* SPDX-License-Identifier: Apache-2.0 */
#include "os/machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/if.h> /* for IFF_UP */
#include <netinet/in.h>
#include <unistd.h>

enum { LABEL_MAX = 63 };

mk_str mk_machine_host(struct mk_arena *arena)
{
    char room[HOST_NAME_MAX + 1] = "";
    if (gethostname(room, sizeof room) < 0)
        room[0] = '\0';
    room[HOST_NAME_MAX] = '\0';
    return mk_arena_copy(arena, mk_str_from_c(room));
}

bool mk_machine_add_name(struct mk_arena *arena, struct mk_machine_names *names, mk_str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (mk_str_eq_nocase(mk_str_from_c(names->at[i]), name))
            return true;
    if (names->n == MK_MACHINE_NAMES_MAX)
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

static bool is_label(mk_str label)
{
    for (size_t i = 0; i < label.len; i++)
        if (!mk_char_is_alpha(label.p[i]) && !mk_char_is_digit(label.p[i]) && label.p[i] != '-' &&
            label.p[i] != '_')
            return false;
    return label.len > 0 && label.len <= LABEL_MAX && label.p[0] != '-' && label.p[label.len - 1] != '-';
}

/* A host name can be set to other text, which no resolver accepts. */
static bool is_host(mk_str name)
{
    bool ok = true;
    while (ok && name.p)
        ok = is_label(mk_str_cut(&name, '.'));
    return ok;
}

static bool add_host(struct mk_arena *arena, struct mk_machine_names *names)
{
    mk_str host = mk_machine_host(arena);
    if (!host.p)
        return false;
    if (!is_host(host))
        return true;
    mk_str label = mk_str_first(host, mk_str_find(host, '.'));
    mk_str local = mk_arena_printf(arena, "%.*s.local", MK_STR_ARG(label));
    return local.p && mk_machine_add_name(arena, names, host) && mk_machine_add_name(arena, names, label) &&
           mk_machine_add_name(arena, names, local);
}

/* "" for an address that cannot appear in a URL. */
static void print_address(const struct sockaddr *a, char room[INET6_ADDRSTRLEN])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    room[0] = '\0';
    if (a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, room, INET6_ADDRSTRLEN);
    } else if (a->sa_family == AF_INET6) {
        memcpy(&v6, a, sizeof v6);
        if (!IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr))
            inet_ntop(AF_INET6, &v6.sin6_addr, room, INET6_ADDRSTRLEN);
    }
}

static bool add_interfaces(struct mk_arena *arena, struct mk_machine_names *names)
{
    struct ifaddrs *list = NULL;
    char room[INET6_ADDRSTRLEN];
    bool ok = true;
    if (getifaddrs(&list) < 0)
        return errno != ENOMEM;
    for (const struct ifaddrs *i = list; ok && i; i = i->ifa_next) {
        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
            continue;
        print_address(i->ifa_addr, room);
        ok = !room[0] || mk_machine_add_name(arena, names, mk_str_from_c(room));
    }
    freeifaddrs(list);
    return ok;
}

bool mk_machine_names(struct mk_arena *arena, struct mk_machine_names *out)
{
    out->n = 0;
    return mk_machine_add_name(arena, out, MK_STR("localhost")) && add_host(arena, out) &&
           mk_machine_add_name(arena, out, MK_STR("127.0.0.1")) &&
           mk_machine_add_name(arena, out, MK_STR("::1")) && add_interfaces(arena, out);
}
