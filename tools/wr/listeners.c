/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/listeners.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "wr/procfile.h"

enum { INIT = 1 };

void wr_listeners_fini(struct wr_listeners *l)
{
    mk_mem_free(l->sockets);
    mk_mem_free(l->holders);
    *l = (struct wr_listeners){.n = 0};
}

/* Ensures capacity for one more element; NULL if out of memory. */
static void *grow_array(void *all, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return all;
    size_t more = *cap ? 2 * *cap : 16;
    void *moved = mk_mem_realloc(all, more * size);
    if (moved)
        *cap = more;
    else
        errno = ENOMEM;
    return moved;
}

static bool add_socket(struct wr_listeners *l, const struct wr_listener *socket)
{
    struct wr_listener *all = grow_array(l->sockets, l->n, &l->cap, sizeof *all);
    if (!all)
        return false;
    l->sockets = all;
    all[l->n] = *socket;
    all[l->n].server = l->n;
    l->n++;
    return true;
}

/* Reads line by line: the table may contain a hundred thousand connections in TIME_WAIT. */
static bool read_tcp_table(struct wr_listeners *l, const char *path, unsigned port)
{
    char line[512];
    struct wr_listener socket;
    bool good = true;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT; /* ENOENT: no IPv6 */
    while (good && fgets(line, sizeof line, file))
        if (wr_proc_parse_listener(mk_str_from_c(line), port, &socket))
            good = add_socket(l, &socket);
    (void)fclose(file);
    return good;
}

bool wr_listeners_read(struct wr_listeners *l, unsigned port)
{
    *l = (struct wr_listeners){.n = 0};
    return read_tcp_table(l, "/proc/net/tcp", port) && read_tcp_table(l, "/proc/net/tcp6", port);
}

static struct mk_sockaddr unmap_ipv4(const struct mk_sockaddr *a)
{
    struct mk_sockaddr v4 = {.len = sizeof v4.v4, .v4.sin_family = AF_INET};
    if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        return *a;
    v4.v4.sin_port = a->v6.sin6_port;
    memcpy(&v4.v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, sizeof v4.v4.sin_addr);
    return v4;
}

/* In the kernel's order of preference: a specific address wins over a wildcard. */
enum address_match { NO_MATCH, ANY_DUAL_STACK, ANY_ADDRESS, EXACT };

static enum address_match match_address(const struct mk_sockaddr *socket, const struct mk_sockaddr *to)
{
    struct mk_sockaddr at = unmap_ipv4(socket), wanted = unmap_ipv4(to);
    if (mk_sockaddr_eq(&at, &wanted))
        return EXACT;
    if (!mk_sockaddr_is_any(&at))
        return NO_MATCH;
    return at.any.sa_family == wanted.any.sa_family ? ANY_ADDRESS
           : at.any.sa_family == AF_INET6           ? ANY_DUAL_STACK
                                                    : NO_MATCH;
}

static void keep_matching_sockets(struct wr_listeners *l, const struct mk_sockaddr *to,
                                  enum address_match best)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (match_address(&l->sockets[i].at, to) == best) {
            l->sockets[n] = l->sockets[i];
            l->sockets[n].server = n;
            n++;
        }
    l->n = n;
}

bool wr_listeners_filter(struct wr_listeners *l, const struct mk_sockaddr *to, size_t n)
{
    enum address_match best = NO_MATCH;
    for (size_t i = 0; best == NO_MATCH && i < n; i++) {
        for (size_t k = 0; k < l->n; k++) {
            enum address_match c = match_address(&l->sockets[k].at, &to[i]);
            best = c > best ? c : best;
        }
        if (best != NO_MATCH)
            keep_matching_sockets(l, &to[i], best);
    }
    return best != NO_MATCH;
}

/* ---- Processes that hold the sockets ---- */

/* Assigns all sockets of the second socket's server to the server of the first socket. */
static void merge_servers(struct wr_listeners *l, size_t socket, size_t other_socket)
{
    size_t server = l->sockets[socket].server, merged = l->sockets[other_socket].server;
    for (size_t i = 0; i < l->n; i++)
        if (l->sockets[i].server == merged)
            l->sockets[i].server = server;
}

/* Returns the index of the socket that a descriptor refers to; l->n if it is none of them. */
static size_t find_socket_of_fd(const struct wr_listeners *l, int folder, pid_t fd)
{
    char link[64], name[16] = "";
    uint64_t inode;
    struct mk_buf text = mk_buf_fixed(name, sizeof name - 1);
    mk_buf_add_num(&text, (uint64_t)fd);
    ssize_t len = readlinkat(folder, name, link, sizeof link);
    mk_str to = mk_str_of(link, len > 0 ? (size_t)len : 0);
    if (!mk_str_starts(to, MK_STR("socket:[")) ||
        !mk_num_parse(mk_str_first(mk_str_skip(to, 8), to.len - 9), &inode))
        return l->n;
    for (size_t i = 0; i < l->n; i++)
        if (l->sockets[i].inode == inode)
            return i;
    return l->n;
}

static bool add_holder(struct wr_listeners *l, pid_t pid, size_t socket)
{
    struct wr_stat s;
    if (!wr_procfile_read_stat(pid, &s))
        return true; /* the process has just exited */
    struct wr_holder *all = grow_array(l->holders, l->n_holders, &l->cap_holders, sizeof *all);
    if (!all)
        return false;
    l->holders = all;
    all[l->n_holders] = (struct wr_holder){.pid = pid, .socket = socket};
    memcpy(all[l->n_holders++].name, s.name, sizeof s.name);
    return true;
}

/* Checks all descriptors of a process. Skips a process with an unreadable fd directory: wr could not measure
 * it either. */
static bool scan_process_fds(struct wr_listeners *l, pid_t pid)
{
    size_t first = l->n;
    pid_t fd;
    DIR *folder = wr_procfile_folder("/proc/%d/fd", (int)pid);
    if (!folder)
        return errno != ENOMEM && errno != EMFILE && errno != ENFILE;
    while (wr_procfile_next_number(folder, &fd)) {
        size_t at = find_socket_of_fd(l, dirfd(folder), fd);
        if (at == l->n)
            continue;
        if (pid == INIT) { /* socket activation: process 1 holds the sockets of many services */
            l->init_holds = true;
            break;
        }
        if (first == l->n)
            first = at;
        merge_servers(l, first, at);
    }
    (void)closedir(folder);
    return first == l->n || add_holder(l, pid, first);
}

static const struct wr_holder *find_holder(const struct wr_listeners *l, pid_t pid)
{
    for (size_t i = 0; i < l->n_holders; i++)
        if (l->holders[i].pid == pid)
            return &l->holders[i];
    return NULL;
}

static void merge_servers_with_ancestors(struct wr_listeners *l, const struct wr_holder *h)
{
    struct wr_stat s;
    for (pid_t at = h->pid; at > INIT && wr_procfile_read_stat(at, &s); at = s.parent) {
        const struct wr_holder *above = find_holder(l, s.parent);
        if (above)
            merge_servers(l, above->socket, h->socket);
    }
}

static bool listen_at_same_address(const struct wr_listeners *l, size_t a, size_t b)
{
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; l->sockets[i].server == a && k < l->n; k++)
            if (l->sockets[k].server == b && mk_sockaddr_eq(&l->sockets[i].at, &l->sockets[k].at))
                return true;
    return false;
}

/* Merges servers with the same process name and listening address: these are workers of one server, whose
 * common parent no longer listens. */
static void merge_servers_with_same_name(struct wr_listeners *l, const struct wr_holder *h)
{
    for (const struct wr_holder *o = l->holders; o < h; o++) {
        size_t a = wr_listeners_server_of(l, o), b = wr_listeners_server_of(l, h);
        if (a != b && strcmp(o->name, h->name) == 0 && listen_at_same_address(l, a, b))
            merge_servers(l, o->socket, h->socket);
    }
}

bool wr_listeners_find_holders(struct wr_listeners *l)
{
    bool good = true;
    pid_t pid;
    DIR *folder = wr_procfile_folder("/proc");
    if (!folder)
        return false;
    while (good && wr_procfile_next_number(folder, &pid))
        good = pid == getpid() || scan_process_fds(l, pid);
    int e = errno;
    (void)closedir(folder);
    errno = e;
    for (size_t i = 0; good && i < l->n_holders; i++)
        merge_servers_with_ancestors(l, &l->holders[i]);
    for (size_t i = 0; good && i < l->n_holders; i++)
        merge_servers_with_same_name(l, &l->holders[i]);
    return good;
}

size_t wr_listeners_server_of(const struct wr_listeners *l, const struct wr_holder *h)
{
    return l->sockets[h->socket].server;
}
