/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/process.h"

#include <time.h>
#include <unistd.h>

#include "base/mem.h"

void wr_cpu_add(struct wr_cpu *to, const struct wr_cpu *what)
{
    to->total += what->total;
    to->user += what->user;
    to->system += what->system;
}

static uint64_t saturating_sub(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

struct wr_cpu wr_cpu_diff(const struct wr_cpu *now, const struct wr_cpu *base)
{
    return (struct wr_cpu){saturating_sub(now->total, base->total), saturating_sub(now->user, base->user),
                           saturating_sub(now->system, base->system)};
}

void wr_cpu_split(const struct wr_cpu *cpu, double *user_us, double *system_us)
{
    double total = (double)cpu->total / 1000, both = (double)cpu->user + (double)cpu->system;
    *system_us = both > 0 ? total * (double)cpu->system / both : 0;
    *user_us = total - *system_us;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
    static uint64_t ns;
    if (ns == 0) {
        long per_second = sysconf(_SC_CLK_TCK);
        ns = 1000000000 / (uint64_t)(per_second > 0 ? per_second : 100);
    }
    return ticks * ns;
}

static struct wr_cpu cpu_from_ticks(uint64_t user, uint64_t system)
{
    return (struct wr_cpu){ticks_to_ns(user + system), ticks_to_ns(user), ticks_to_ns(system)};
}

/* CPU clock types of other processes, as the kernel encodes them in a clockid_t; clock_getcpuclockid(3)
 * supports only the last one. */
enum { CPUCLOCK_PROF, CPUCLOCK_VIRT, CPUCLOCK_SCHED };

static bool read_cpu_clock(pid_t pid, int which, uint64_t *ns)
{
    struct timespec t;
    clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | (unsigned)which);
    if (clock_gettime(clock, &t) < 0)
        return false;
    *ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    return true;
}

/* Reads the CPU time of the process in ns, including that of exited threads. The kernel samples the split
 * between user and system time at each tick, but does not round it to 10 ms as in /proc/PID/stat. */
static bool read_cpu_clocks(pid_t pid, struct wr_cpu *out)
{
    uint64_t ticks, user;
    if (!read_cpu_clock(pid, CPUCLOCK_VIRT, &user) || !read_cpu_clock(pid, CPUCLOCK_PROF, &ticks) ||
        !read_cpu_clock(pid, CPUCLOCK_SCHED, &out->total))
        return false;
    out->user = user;
    out->system = saturating_sub(ticks, user);
    return true;
}

bool wr_process_init(struct wr_process *p, pid_t pid)
{
    struct wr_stat s;
    *p = (struct wr_process){.pid = pid, .is_new = true};
    if (!wr_procfile_read_stat(pid, &s) || wr_stat_is_dead(&s))
        return false;
    p->start = s.start;
    memcpy(p->name, s.name, sizeof p->name);
    wr_process_read_cpu(p);
    p->waited_at_first = p->waited;
    return !p->is_gone;
}

void wr_process_fini(struct wr_process *p)
{
    mk_mem_free(p->threads);
    *p = (struct wr_process){0};
}

void wr_process_read_cpu(struct wr_process *p)
{
    struct wr_stat s;
    struct wr_cpu self;
    if (!wr_procfile_read_stat(p->pid, &s) || s.start != p->start) {
        p->is_gone = true;
        return;
    }
    p->parent = s.parent;
    p->is_dead = wr_stat_is_dead(&s);
    p->waited = cpu_from_ticks(s.waited_user, s.waited_system);
    if (!read_cpu_clocks(p->pid, &self))
        self = cpu_from_ticks(s.user, s.system);
    /* the clocks of a process that has just exited lack the time of its last threads: keep the larger sum */
    if (self.total >= p->self.total)
        p->self = self;
}

static struct wr_thread *find_or_add_thread(struct wr_process *p, pid_t tid)
{
    for (size_t i = 0; i < p->n_threads; i++)
        if (p->threads[i].tid == tid)
            return &p->threads[i];
    if (p->n_threads == p->cap_threads) {
        size_t cap = p->cap_threads ? 2 * p->cap_threads : 4;
        struct wr_thread *more = mk_mem_realloc(p->threads, cap * sizeof *more);
        if (!more)
            return NULL;
        p->threads = more;
        p->cap_threads = cap;
    }
    p->threads[p->n_threads] = (struct wr_thread){.tid = tid};
    return &p->threads[p->n_threads++];
}

static void add_context_switches(struct wr_switches *to, const struct wr_switches *what)
{
    to->voluntary += what->voluntary;
    to->involuntary += what->involuntary;
}

static void read_thread_stats(struct wr_process *p, struct wr_thread *t)
{
    char buf[4096];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    struct wr_switches now;
    struct wr_schedstat run;
    if (wr_procfile_read(&text, "/proc/%d/task/%d/status", (int)p->pid, (int)t->tid) != 0 ||
        !wr_proc_parse_named_number(mk_buf_str(&text), MK_STR("voluntary_ctxt_switches"), &now.voluntary) ||
        !wr_proc_parse_named_number(mk_buf_str(&text), MK_STR("nonvoluntary_ctxt_switches"),
                                    &now.involuntary))
        return;
    t->seen = true;
    if (now.voluntary < t->switches.voluntary) { /* the tid was reused by another thread */
        add_context_switches(&p->switches_ended, &t->switches);
        t->run_at_start = (struct wr_schedstat){0, 0};
    }
    t->switches = now;
    if (wr_procfile_read(&text, "/proc/%d/task/%d/schedstat", (int)p->pid, (int)t->tid) == 0 &&
        wr_schedstat_parse(mk_buf_str(&text), &run))
        t->run = run;
}

static void remove_ended_threads(struct wr_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_threads; i++) {
        if (p->threads[i].seen)
            p->threads[n++] = p->threads[i];
        else
            add_context_switches(&p->switches_ended, &p->threads[i].switches);
    }
    p->n_threads = n;
}

bool wr_process_read_threads(struct wr_process *p)
{
    pid_t tid;
    DIR *folder = wr_procfile_folder("/proc/%d/task", (int)p->pid);
    bool good = true;
    if (!folder)
        return true; /* the process exited: keep the last values */
    for (size_t i = 0; i < p->n_threads; i++)
        p->threads[i].seen = false;
    while (good && wr_procfile_next_number(folder, &tid)) {
        struct wr_thread *t = find_or_add_thread(p, tid);
        if (t)
            read_thread_stats(p, t);
        good = t != NULL;
    }
    (void)closedir(folder);
    if (good)
        remove_ended_threads(p);
    return good;
}

void wr_process_read_memory(struct wr_process *p)
{
    char buf[4096];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    uint64_t kb;
    if (wr_procfile_read(&text, "/proc/%d/status", (int)p->pid) == 0 &&
        wr_proc_parse_named_number(mk_buf_str(&text), MK_STR("VmHWM"), &kb))
        p->hwm_kb = kb;
    bool had = p->pss_is_known;
    p->pss_is_known = wr_procfile_read(&text, "/proc/%d/smaps_rollup", (int)p->pid) == 0 &&
                      wr_proc_parse_named_number(mk_buf_str(&text), MK_STR("Pss"), &kb);
    if (p->pss_is_known)
        p->pss_kb = kb;
    else {
        wr_process_read_cpu(
            p); /* updates is_gone: a file is unreadable after an exit, or without permission */
        if (had)
            p->pss_kb = 0;
    }
}

struct wr_cpu wr_process_unreaped_child_cpu(const struct wr_process *p)
{
    struct wr_cpu inherited = wr_cpu_diff(&p->waited, &p->waited_at_first);
    return wr_cpu_diff(&p->vanished, &inherited);
}

struct wr_switches wr_process_switches(const struct wr_process *p)
{
    struct wr_switches sum = p->switches_ended;
    for (size_t i = 0; i < p->n_threads; i++)
        add_context_switches(&sum, &p->threads[i].switches);
    return sum;
}
