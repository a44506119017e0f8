/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/syscalls.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/fd.h"

static bool read_tracepoint_id(mk_str folder, uint64_t *id)
{
    char room[64];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    if (wr_procfile_read(&text, "%.*s/events/raw_syscalls/sys_enter/id", MK_STR_ARG(folder)) != 0)
        return false;
    mk_str rest = mk_buf_str(&text);
    return mk_num_parse(mk_str_cut(&rest, '\n'), id);
}

static bool find_tracepoint_id(uint64_t *id)
{
    struct mk_buf mounts = mk_buf_growing(WR_PROCFILE_MAX), folder = mk_buf_growing(1 << 16);
    bool found = wr_procfile_read(&mounts, "/proc/self/mounts") == 0 &&
                 wr_proc_parse_mount(mk_buf_str(&mounts), MK_STR("tracefs"), &folder) &&
                 read_tracepoint_id(mk_buf_str(&folder), id);
    mk_buf_free(&mounts);
    mk_buf_free(&folder);
    return found || read_tracepoint_id(MK_STR("/sys/kernel/tracing"), id) ||
           read_tracepoint_id(MK_STR("/sys/kernel/debug/tracing"), id);
}

static int open_counter(uint64_t id, pid_t tid)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT, .size = sizeof attr, .config = id, .inherit = 1};
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static const char *explain_perf_error(mk_err e)
{
    switch (e) {
    case -EACCES:
    case -EPERM:
        return "the kernel forbids it: run wr as root, or with CAP_PERFMON";
    case -ENOSYS:
    case -ENOENT:
    case -ENODEV:
    case -EOPNOTSUPP:
        return "this kernel has no performance events for tracepoints";
    case -EMFILE:
        return "the server has more threads than wr may open files: raise `ulimit -n`";
    default:
        return mk_err_text(e);
    }
}

const char *wr_syscalls_start(struct wr_syscalls *s, const struct wr_process_tree *f)
{
    uint64_t id;
    size_t n = 0;
    *s = (struct wr_syscalls){NULL, 0};
    if (!find_tracepoint_id(&id))
        return geteuid() == 0
                   ? "there is no tracefs with raw_syscalls: mount -t tracefs none /sys/kernel/tracing"
                   : "tracefs cannot be read: run wr as root";
    for (size_t i = 0; i < f->n; i++)
        n += f->all[i].n_threads;
    s->fds = mk_mem_zalloc(n, sizeof *s->fds);
    if (!s->fds)
        return "out of memory";
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->all[i].n_threads; k++) {
            int fd = open_counter(id, f->all[i].threads[k].tid);
            if (fd < 0 && errno != ESRCH)
                return explain_perf_error(mk_err_last());
            if (fd >= 0)
                s->fds[s->n++] = fd;
        }
    return s->n ? NULL : "the server has no threads left";
}

uint64_t wr_syscalls_stop(struct wr_syscalls *s)
{
    uint64_t sum = 0, count;
    for (size_t i = 0; i < s->n; i++) {
        if (read(s->fds[i], &count, sizeof count) == (ssize_t)sizeof count)
            sum += count;
        mk_fd_close(&s->fds[i]);
    }
    mk_mem_free(s->fds);
    *s = (struct wr_syscalls){NULL, 0};
    return sum;
}
