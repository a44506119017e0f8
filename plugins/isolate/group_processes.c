/* SPDX-License-Identifier: Apache-2.0 */
#include "group_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "group_config.h"
#include "group_record.h"
#include "process.h"
#include "runtime_dir.h"
#include "supervisor.h"

enum {
    RELOAD_MS = 60000,
    FIRST_MS = 10000, /* after this time the server starts without the group */
    END_MS = 5000,
    STOP_MS = 5000,
    FILE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
};

/* ---- State in the master ---- */

/* Seals the scoreboard: workers of the group can write to it, but truncating it would crash its readers. */
static int open_scoreboard(struct isolate_record *r)
{
    r->scoreboard_fd = memfd_create("isolate-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (r->scoreboard_fd < 0 || ftruncate(r->scoreboard_fd, sizeof *r->scoreboard) < 0 ||
        fcntl(r->scoreboard_fd, F_ADD_SEALS, FILE_SEALS) < 0)
        return -errno;
    void *scoreboard =
        mmap(NULL, sizeof *r->scoreboard, PROT_READ | PROT_WRITE, MAP_SHARED, r->scoreboard_fd, 0);
    if (scoreboard == MAP_FAILED)
        return -errno;
    r->scoreboard = scoreboard;
    memcpy(r->scoreboard->secret, r->secret, sizeof r->secret);
    return 0;
}

static int open_memfds(struct isolate_record *r)
{
    r->config_fd = memfd_create("isolate-configuration", MFD_CLOEXEC);
    if (r->config_fd < 0 || fchmod(r->config_fd, 0444) < 0)
        return -errno;
    return open_scoreboard(r);
}

/* Closes the record's descriptors. Running processes continue. */
static void close_record_fds(struct isolate_record *r)
{
    isolate_record_close_private_fds(r);
    if (r->presence_fd >= 0)
        close(r->presence_fd);
    r->presence_fd = -1;
    if (r->scoreboard)
        munmap(r->scoreboard, sizeof *r->scoreboard);
    r->scoreboard = NULL;
    mk_stat_file_unmap(r->statistics);
    r->statistics = NULL;
    explicit_bzero(r->secret, sizeof r->secret);
    r->latest = NULL;
    r->master = 0;
    *r->socket = '\0';
}

static int open_record_fds(struct isolate_record *r)
{
    if (r->master)
        return 0;
    r->master = getpid();
    int e = open_memfds(r);
    if (!e)
        e = isolate_runtime_dir_create(r);
    return e;
}

/* ---- The supervisor ---- */

static bool wait_for_supervisor_reply(const struct isolate_record *r, struct isolate_supervisor_reply *answer,
                                      int ms)
{
    struct pollfd at = {.fd = r->control_fd, .events = POLLIN};
    int64_t end = isolate_process_now_ms() + ms;
    int n;
    do {
        int64_t left = end - isolate_process_now_ms();
        n = poll(&at, 1, left > 0 ? (int)left : 0);
    } while (n < 0 && errno == EINTR);
    return n == 1 && recv(r->control_fd, answer, sizeof *answer, MSG_DONTWAIT) == (ssize_t)sizeof *answer;
}

static bool has_supervisor(const struct isolate_record *r)
{
    struct isolate_supervisor_reply old;
    ssize_t n;
    if (r->control_fd < 0)
        return false;
    while ((n = recv(r->control_fd, &old, sizeof old, MSG_DONTWAIT)) > 0)
        continue; /* discards a late reply, whose caller has timed out */
    return n < 0 && errno == EAGAIN;
}

/* Opens a file that is used only for locks. */
static int open_presence_file(void)
{
    int fd = memfd_create("isolate-presence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0)
        (void)fcntl(fd, F_ADD_SEALS, FILE_SEALS | F_SEAL_WRITE);
    return fd;
}

/* Returns a descriptor through which the group cannot change its configuration. */
static int reopen_read_only(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int fork_supervisor(const struct isolate_group *g, const int fds[ISOLATE_SUPERVISOR_FDS], int control)
{
    struct isolate_record *r = g->record;
    for (size_t i = 0; i < ISOLATE_LIMITS_FD - ISOLATE_LISTEN_FD; i++)
        if (fds[i] < 0)
            return -errno;
    pid_t pid = fork();
    if (pid == 0)
        isolate_supervisor_run(g, fds);
    if (pid < 0)
        return -errno;
    if (r->control_fd >= 0)
        close(r->control_fd); /* the previous supervisor exits when the workers that use it have exited */
    if (r->presence_fd >= 0)
        close(r->presence_fd);
    r->control_fd = control;
    r->presence_fd = fds[ISOLATE_PRESENCE_FD - ISOLATE_LISTEN_FD];
    return 0;
}

/* Returns false if the group's limits could not be applied, which was logged or reported. */
static bool open_cgroup(const struct isolate_group *g, int *fd)
{
    struct isolate_cgroup_path place;
    char error[ISOLATE_CGROUP_ERROR_MAX];
    const struct isolate_cgroup_limits *limits = &g->settings->limits;
    if (!isolate_cgroup_has_limits(limits))
        return true;
    if (isolate_cgroup_find_own("/proc/self", &place, error))
        *fd = isolate_cgroup_create(&place, isolate_runtime_dir_name(g->record), limits, error);
    if (*fd < 0 && g->config)
        mk_config_error(g->config, g->settings, limits->cpu ? "CPUQuota" : "MemoryMax", "%s", error);
    return *fd >= 0;
}

/* Each supervisor gets a new file: its group counts from 0, and another group of the same service, which is
 * still finishing requests, must not write to the same memory. */
static int open_statistics(struct isolate_record *r, int *fd)
{
    *fd = mk_stat_file_new();
    if (*fd < 0)
        return *fd;
    struct mk_stat_registry *mapped = mk_stat_file_map(*fd, r->statistics);
    if (mapped)
        r->statistics = mapped;
    return mapped ? 0 : -ENOMEM;
}

/* Passes copies of the descriptors, because a child closes those of the record. */
static int start_supervisor(const struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    int ends[2], limits = -1, statistics = -1;
    if (!open_cgroup(g, &limits))
        return -ECANCELED;
    int e = open_statistics(g->record, &statistics);
    if (e)
        return e;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        e = -errno;
        close(statistics);
        return e;
    }
    const int fds[ISOLATE_SUPERVISOR_FDS] = {fcntl(r->listen_fd, F_DUPFD_CLOEXEC, 0),
                                             fcntl(r->scoreboard_fd, F_DUPFD_CLOEXEC, 0),
                                             reopen_read_only(r->config_fd),
                                             statistics,
                                             ends[1],
                                             open_presence_file(),
                                             limits};
    e = fork_supervisor(g, fds, ends[0]);
    if (e)
        close(ends[0]);
    for (size_t i = 0; i < ISOLATE_SUPERVISOR_FDS; i++)
        if (fds[i] >= 0 && fds[i] != r->presence_fd)
            close(fds[i]);
    return e;
}

static void send_command(const struct isolate_record *r, enum isolate_command what)
{
    char byte = (char)what;
    (void)!send(r->control_fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- Starting ---- */

/* The hash serves only to detect changed names. */
static uint64_t hash_names(const struct mk_conf_words *names)
{
    struct mk_hash_key key = {0};
    for (size_t i = 0; i < names->n; i++)
        key.k0 = mk_hash(&key, names->v[i]);
    return key.k0;
}

static void format_supervisor_settings(const struct isolate_group *g,
                                       char out[ISOLATE_SUPERVISOR_SETTINGS_MAX])
{
    const struct isolate_settings *s = g->settings;
    (void)snprintf(out, ISOLATE_SUPERVISOR_SETTINGS_MAX, "%d %d %u %u %u %llu %u %llu %llx %.80s",
                   g->log_is_json, g->has_user, (unsigned)g->uid, (unsigned)g->gid, s->nice,
                   (unsigned long long)s->memory, s->limits.cpu, (unsigned long long)s->limits.memory,
                   (unsigned long long)hash_names(&s->env), g->log);
}

/* Reports a warning if the group has never served, because the server must be able to start without it.
 * Otherwise reports an error, and the group keeps its previous configuration. */
static int report_not_serving(struct mk_config *c, const struct isolate_group *g, bool is_late)
{
    if (g->wait.has_served && is_late)
        mk_config_error(c, g->settings, "Service",
                        "the service `%s` did not start within %d seconds: it hangs while it starts", g->name,
                        RELOAD_MS / 1000);
    else if (g->wait.has_served)
        mk_config_error(
            c, g->settings, "Service",
            "the service `%s` cannot serve its new configuration: see its messages in the error log",
            g->name);
    else if (is_late)
        mk_config_warn(c, g->settings, "Service",
                       "the service `%s` did not start within %d seconds: requests get 503 until it serves",
                       g->name, FIRST_MS / 1000);
    else
        mk_config_warn(
            c, g->settings, "Service",
            "the service `%s` does not serve yet: see its messages in the error log; it will be restarted",
            g->name);
    return g->wait.has_served ? -ETIMEDOUT : 0;
}

/* Returns 0 if the master need not wait any longer, -EAGAIN if it must, or an error that was reported. The
 * master calls it when the supervisor has replied. */
static int is_group_ready(struct mk_config *config, void *data)
{
    struct isolate_group *g = data;
    struct isolate_supervisor_reply answer;
    bool is_late = isolate_process_now_ms() >= g->wait.end_ms;
    ssize_t n = recv(g->record->control_fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return is_late ? report_not_serving(config, g, true) : -EAGAIN;
    /* The group's server serves; but the configuration may be an earlier one, if it has rejected this one. */
    bool serves = n == (ssize_t)sizeof answer && answer.serves &&
                  isolate_scoreboard_serves_version(g->record->scoreboard, g->wait.version);
    return serves ? 0 : report_not_serving(config, g, false);
}

static bool report_start_error(struct mk_config *c, const struct isolate_group *g, int e)
{
    mk_config_error(c, g->settings, "Service", "the service `%s` cannot be started: %s", g->name,
                    strerror(-e));
    return false;
}

static int write_config_file(const struct isolate_group *g)
{
    char root[ISOLATE_ROOT_MAX];
    return isolate_runtime_dir_format_empty_root(g->record, root)
               ? isolate_group_config_write(g, root, g->record->config_fd)
               : -ENAMETOOLONG;
}

/* Applies the configuration of `g` to the group's processes. */
static int apply_group_config(struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    char settings[ISOLATE_SUPERVISOR_SETTINGS_MAX];
    g->wait.version = atomic_fetch_add(&r->scoreboard->version, 1) + 1;
    r->latest = g;
    format_supervisor_settings(g, settings);
    int e = write_config_file(g);
    if (!e && has_supervisor(r) && strcmp(settings, r->supervisor_settings) == 0)
        send_command(r, ISOLATE_RELOAD);
    else if (!e)
        e = start_supervisor(g);
    memcpy(r->supervisor_settings, settings, sizeof settings);
    return e;
}

static const char *not_serving_reason(void *data)
{
    const struct isolate_group *g = data;
    return isolate_scoreboard_is_serving(g->record->scoreboard) ? NULL : "not serving";
}

/* Lets plugins of the front server report the statistics and the readiness of the group. */
static int add_statistics(struct mk_config *config, struct isolate_group *g)
{
    const struct mk_stat_source source = {.name = g->name,
                                          .registry = g->record->statistics,
                                          .not_serving_reason = not_serving_reason,
                                          .data = g};
    return g->record->statistics ? mk_config_add_statistics(config, &source) : 0;
}

bool isolate_group_start(struct mk_config *config, struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    int e = open_record_fds(r);
    if (e)
        return report_start_error(config, g, e);
    g->is_used = true;
    g->before = r->latest;
    g->log = mk_config_error_log(config).p;
    g->log_has_priorities = mk_config_error_log_has_priorities(config);
    g->log_is_json = mk_config_error_log_is_json(config);
    r->users++;
    g->wait.has_served = isolate_scoreboard_is_serving(r->scoreboard);
    uint32_t patience_ms = g->wait.has_served ? RELOAD_MS : FIRST_MS;
    g->wait.end_ms = isolate_process_now_ms() + patience_ms;
    g->config = config;
    e = apply_group_config(g);
    g->config = NULL;
    if (e == -ECANCELED)
        return false;
    e = e ? e : add_statistics(config, g);
    e = e ? e : mk_config_wait_ready(config, r->control_fd, patience_ms, is_group_ready, g);
    return !e || report_start_error(config, g, e);
}

/* ---- Stopping ---- */

/* Returns to the previous configuration after this one was abandoned. Processes that start from now on get
 * the previous configuration. If the limits differ, processes must be restarted; otherwise running processes
 * still have that configuration, or return to it. */
static void restore_previous_config(const struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    char settings[ISOLATE_SUPERVISOR_SETTINGS_MAX];
    if (r->latest && r->latest->before == g)
        r->latest->before = NULL;
    if (r->latest != g || !g->before)
        return;
    format_supervisor_settings(g->before, settings);
    if (strcmp(settings, r->supervisor_settings) != 0)
        (void)apply_group_config(g->before);
    else
        (void)write_config_file(g->before);
    r->latest = g->before;
}

bool isolate_group_release(struct isolate_group *g)
{
    struct isolate_record *r = g->record;
    if (!g->is_used || r->master != getpid())
        return false;
    g->is_used = false;
    if (--r->users) {
        restore_previous_config(g);
        return false;
    }
    send_command(r, ISOLATE_END);
    return true;
}

/* Waits, for at most `ms`, until the supervisor has closed its end of the socket. */
static bool wait_for_supervisor_exit(const struct isolate_record *r, int ms)
{
    struct isolate_supervisor_reply answer;
    int64_t end = isolate_process_now_ms() + ms;
    while (isolate_process_now_ms() < end && has_supervisor(r))
        (void)wait_for_supervisor_reply(r, &answer, (int)(end - isolate_process_now_ms()));
    return !has_supervisor(r);
}

void isolate_group_close(struct isolate_group *g, bool waits)
{
    struct isolate_record *r = g->record;
    /* If workers are alive, the server still runs, and only the plugin was removed. */
    waits = waits && !isolate_record_has_live_workers(r->presence_fd);
    if (waits && !wait_for_supervisor_exit(r, END_MS)) {
        send_command(r, ISOLATE_STOP);
        (void)wait_for_supervisor_exit(r, STOP_MS);
    }
    if (waits || !has_supervisor(r))
        isolate_runtime_dir_remove(r); /* else the supervisor does so when no old worker needs the folder */
    close_record_fds(r);
    isolate_record_free_if_unused(r);
}

/* ---- In a public worker ---- */

void isolate_group_hold_presence(const struct isolate_group *g)
{
    const struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (g->record->presence_fd >= 0)
        (void)fcntl(g->record->presence_fd, F_SETLK, &lock);
}
