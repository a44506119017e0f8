/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROOM = 2048 };

struct processes *metrics_processes_new(struct mk_config *config)
{
    return mk_config_shared(config, "metrics/processes", sizeof(struct processes));
}

/* ---- This process ---- */

void metrics_process_reporter_open(struct process_reporter *m, struct processes *shared)
{
    long page = sysconf(_SC_PAGESIZE);
    *m = (struct process_reporter){
        .shared = shared, .pid = gettid(), .page = page > 0 ? (uint64_t)page : 4096};
    m->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    m->smaps_fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
}

static struct process *process_slot(const struct process_reporter *m)
{
    return &m->shared->at[m->pid % PROCESS_SLOTS];
}

void metrics_process_reporter_close(struct process_reporter *m)
{
    int64_t own = m->pid;
    atomic_compare_exchange_strong(&process_slot(m)->pid, &own, 0);
    if (m->statm_fd >= 0)
        close(m->statm_fd);
    if (m->smaps_fd >= 0)
        close(m->smaps_fd);
}

static mk_str read_proc_file(int fd, char *buf)
{
    ssize_t n = fd >= 0 ? pread(fd, buf, ROOM, 0) : -1;
    return mk_str_of(buf, n > 0 ? (size_t)n : 0);
}

/* Parses /proc/self/statm: "size resident shared ...", in pages. */
static uint64_t read_rss(const struct process_reporter *m)
{
    char buf[ROOM];
    uint64_t pages = 0;
    mk_str text = read_proc_file(m->statm_fd, buf);
    (void)mk_str_word(&text);
    return mk_num_parse(mk_str_word(&text), &pages) ? pages * m->page : 0;
}

/* Finds the line "Pss:   1234 kB". */
static uint64_t read_pss(const struct process_reporter *m)
{
    char buf[ROOM];
    uint64_t kb = 0;
    mk_str text = read_proc_file(m->smaps_fd, buf);
    while (text.p) {
        mk_str line = mk_str_cut(&text, '\n');
        if (mk_str_eq(mk_str_word(&line), MK_STR("Pss:")))
            return mk_num_parse(mk_str_word(&line), &kb) ? kb * 1024 : 0;
    }
    return 0;
}

static uint64_t timeval_us(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* In a program that embeds the server, a worker is a thread, and only its own CPU time counts. */
static uint64_t read_cpu(const struct process_reporter *m)
{
    struct rusage used;
    int who = m->pid == getpid() ? RUSAGE_SELF : RUSAGE_THREAD;
    return getrusage(who, &used) == 0 ? timeval_us(&used.ru_utime) + timeval_us(&used.ru_stime) : 0;
}

void metrics_process_reporter_run(struct process_reporter *m, const struct mk_worker *w)
{
    struct process *p = process_slot(m);
    struct mk_cache_info cache = {0};
    mk_worker_cache(w, &cache);
    atomic_store(&p->pid, 0); /* so that readers ignore an incomplete entry */
    atomic_store(&p->rss, read_rss(m));
    atomic_store(&p->pss, read_pss(m));
    atomic_store(&p->cpu_us, read_cpu(m));
    atomic_store(&p->cache_files, cache.files);
    atomic_store(&p->cache_bytes, cache.memory);
    atomic_store(&p->pid, m->pid);
}

/* ---- All processes ---- */

bool metrics_processes_find(const struct processes *p, int64_t pid, struct process_info *out)
{
    if (pid <= 0)
        return false;
    const struct process *at = &p->at[pid % PROCESS_SLOTS];
    if (atomic_load(&at->pid) != pid)
        return false;
    *out = (struct process_info){.rss = atomic_load(&at->rss),
                                 .pss = atomic_load(&at->pss),
                                 .cpu_us = atomic_load(&at->cpu_us),
                                 .cache_files = atomic_load(&at->cache_files),
                                 .cache_bytes = atomic_load(&at->cache_bytes)};
    return atomic_load(&at->pid) == pid;
}
