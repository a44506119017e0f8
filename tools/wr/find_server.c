/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/find_server.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "wr/listeners.h"
#include "wr/message.h"

const char *wr_find_by_to_text(enum wr_find_by by)
{
    return by == WR_FIND_BY_PID ? "pid" : by == WR_FIND_BY_PORT ? "port" : "name";
}

static bool report_out_of_memory(void)
{
    return wr_message_error("out of memory while looking for the server's processes");
}

static bool report_proc_error(void)
{
    mk_err e = mk_err_last();
    return e == -ENOMEM ? report_out_of_memory()
                        : wr_message_error("cannot look for the server's processes: %s", mk_err_text(e));
}

static bool find_by_pid(const struct wr_find *what, struct wr_process_tree *out)
{
    for (size_t i = 0; i < what->n_pids; i++) {
        size_t before = out->n;
        if (!wr_process_tree_add(out, what->pids[i]))
            return report_out_of_memory();
        if (out->n == before && !wr_process_tree_find(out, what->pids[i]))
            return wr_message_error("there is no process %d: start the server first, or let --port find it",
                                    (int)what->pids[i]);
    }
    return true;
}

/* Finds the listening sockets that clients of the URL reach. */
static bool find_listening_sockets(const struct wr_find *what, struct wr_listeners *l)
{
    struct mk_sockaddr at[LOAD_URL_ADDRESSES_MAX];
    const char *why;
    if (!wr_listeners_read(l, what->port))
        return report_proc_error();
    if (l->n == 0)
        return wr_message_error(
            "nothing listens on port %u here: start the server first, or name its process with --pid",
            what->port);
    if (!what->url)
        return true;
    size_t n = load_url_resolve(what->url, at, &why);
    if (n == 0)
        return wr_message_error("%s was not found: %s; name the server with --pid, --port or --name",
                                what->url->host, why);
    return wr_listeners_filter(l, at, n) ||
           wr_message_error(
               "a process listens on port %u, but not at %s: start the server first, or name it with --pid "
               "or --port",
               what->port, what->url->host);
}

static bool report_unknown_owner(const struct wr_find *what, const struct wr_listeners *l)
{
    if (l->init_holds)
        return wr_message_error(
            "only process 1 holds port %u, for a service: name the server with --pid or --name", what->port);
    return wr_message_error(
        "a process listens on port %u, but wr may not inspect it: run wr as root or as the server's "
        "user, or name its process with --pid",
        what->port);
}

/* Reports that several servers listen, and names the first process of each. */
static bool report_several_servers(const struct wr_find *what, const struct wr_listeners *l)
{
    char room[512] = "";
    struct mk_buf text = mk_buf_fixed(room, sizeof room - 1);
    for (size_t i = 0; i < l->n_holders; i++) {
        const struct wr_holder *h = &l->holders[i], *first = l->holders;
        while (wr_listeners_server_of(l, first) != wr_listeners_server_of(l, h))
            first++;
        if (first != h)
            continue;
        mk_buf_addf(&text, "%s%d (%s) at ", i ? ", " : "", (int)h->pid, h->name);
        mk_sockaddr_format(&l->sockets[h->socket].at, &text);
    }
    return wr_message_error("several servers listen on port %u: %s%s; choose one with --pid%s", what->port,
                            room, text.failed ? " and others" : "",
                            what->url ? "" : ", or omit --port if the address in the URL decides");
}

static bool add_owners_of_sockets(const struct wr_find *what, const struct wr_listeners *l,
                                  struct wr_process_tree *out)
{
    if (l->n_holders == 0)
        return report_unknown_owner(what, l);
    for (size_t i = 0; i < l->n_holders; i++) {
        if (wr_listeners_server_of(l, &l->holders[i]) != wr_listeners_server_of(l, l->holders))
            return report_several_servers(what, l);
        if (!wr_process_tree_add(out, l->holders[i].pid))
            return report_out_of_memory();
    }
    return out->n > 0 || report_unknown_owner(what, l);
}

static bool find_by_port(const struct wr_find *what, struct wr_process_tree *out)
{
    struct wr_listeners l;
    bool good = find_listening_sockets(what, &l);
    if (good)
        good = wr_listeners_find_holders(&l) ? add_owners_of_sockets(what, &l, out) : report_proc_error();
    wr_listeners_fini(&l);
    return good;
}

/* Compares with the name in `ps`, which the kernel truncates to 15 characters, or with the name of the
 * executable. */
static bool has_process_name(pid_t pid, mk_str name)
{
    enum { COMM_MAX = 15 };
    struct wr_stat s;
    char path[32], link[PATH_MAX];
    if (!wr_procfile_read_stat(pid, &s) || wr_stat_is_dead(&s))
        return false;
    if (mk_str_eq(mk_str_from_c(s.name), mk_str_first(name, COMM_MAX)))
        return true;
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, link, sizeof link);
    mk_str file = mk_str_of(link, n > 0 ? (size_t)n : 0);
    size_t slash = mk_str_find_last(file, '/');
    return slash != MK_STR_NONE && mk_str_eq(mk_str_skip(file, slash + 1), name);
}

/* Excludes wr and its ancestors: a wrapper script may have the server's name. */
static bool is_own_ancestor(pid_t pid)
{
    struct wr_stat s;
    for (pid_t at = getpid(); at > 0; at = s.parent) {
        if (at == pid)
            return true;
        if (!wr_procfile_read_stat(at, &s))
            break;
    }
    return false;
}

static bool find_by_name(const struct wr_find *what, struct wr_process_tree *out)
{
    DIR *folder = wr_procfile_folder("/proc");
    mk_str name = mk_str_from_c(what->name);
    bool good = true;
    pid_t pid;
    if (!folder)
        return report_proc_error();
    while (good && wr_procfile_next_number(folder, &pid))
        if (has_process_name(pid, name) && !is_own_ancestor(pid))
            good = wr_process_tree_add(out, pid);
    (void)closedir(folder);
    if (!good)
        return report_out_of_memory();
    if (out->n == 0)
        return wr_message_error(
            "no process has the name \"%s\": start the server first, or look up its name with `ps -e`",
            what->name);
    return true;
}

bool wr_find_server(const struct wr_find *what, struct wr_process_tree *out)
{
    bool found = what->by == WR_FIND_BY_PID    ? find_by_pid(what, out)
                 : what->by == WR_FIND_BY_PORT ? find_by_port(what, out)
                                               : find_by_name(what, out);
    if (!found)
        return false;
    if (!wr_process_tree_add_descendants(out))
        return report_out_of_memory();
    wr_process_tree_mark_roots(out);
    if (!what->cgroup)
        return wr_process_tree_use_own_cgroup(out) || report_out_of_memory();
    const char *fault = wr_process_tree_use_cgroup(out, what->cgroup);
    return !fault || wr_message_error("%s: %s", what->cgroup, fault);
}
