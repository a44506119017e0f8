/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread spends its time: on a processor, ready to run but without a processor, or blocked in system
 * calls. One thread observes another, from samples at intervals. */
#ifndef DUDA_SERVICE_THREAD_USAGE_H
#define DUDA_SERVICE_THREAD_USAGE_H

#include <monkey/buf.h>

enum duda_thread_state {
    DUDA_THREAD_UNKNOWN,  /* /proc is not readable */
    DUDA_THREAD_RUNNABLE, /* runs, or waits for a processor */
    DUDA_THREAD_BLOCKED,  /* in a system call or a page fault */
    DUDA_THREAD_STOPPED,  /* by a debugger or SIGSTOP */
};

struct duda_thread_sample {
    uint64_t time_us, cpu_us; /* monotonic time; processor time of the thread */
    uint64_t queued_us;       /* time in the run queue, without the present wait; 0 if unknown */
    enum duda_thread_state state;
};

/* The sums of several intervals. */
struct duda_thread_usage {
    uint64_t computed_us, blocked_us, queued_us;
};

/* Files of /proc about a thread. */
struct duda_thread_files {
    int stat, schedstat; /* negative: not available */
};

/* Opens the files of the calling thread. If that fails, the state in samples is unknown. */
void duda_thread_files_open(struct duda_thread_files *f);
void duda_thread_files_close(struct duda_thread_files *f);
/* Sets the members of *out that come from these files. */
void duda_thread_files_read(const struct duda_thread_files *f, struct duda_thread_sample *out);
/* Parses the text of /proc/PID/task/TID/stat and of schedstat. */
void duda_thread_files_parse(mk_str stat, mk_str schedstat, struct duda_thread_sample *out);

/* Adds the interval between two samples. `tick_us` is the intended interval: if the state is unknown, a thread
 * without processor time counts as blocked only if the observing thread, which probably competes for the same
 * processors, was in time. */
void duda_thread_usage_add(struct duda_thread_usage *u, const struct duda_thread_sample *before,
                           const struct duda_thread_sample *after, uint64_t tick_us);
/* The time for which the thread itself is responsible. */
static inline uint64_t duda_thread_usage_own_us(const struct duda_thread_usage *u)
{
    return u->computed_us + u->blocked_us;
}
enum duda_usage_verdict {
    DUDA_USAGE_FINE,
    DUDA_USAGE_BLOCKS,  /* it has computed, or was blocked, for too long */
    DUDA_USAGE_STARVED, /* it takes long only because it has waited for a processor */
};
/* Judges a handler that should compute and be blocked for less than own_us, and have a processor within
 * queued_us. */
enum duda_usage_verdict duda_thread_usage_judge(const struct duda_thread_usage *u, uint64_t own_us,
                                                uint64_t queued_us);
/* Appends "computed for 3 ms, blocked in system calls for 52 ms, without a processor for 0 ms". */
void duda_thread_usage_format(const struct duda_thread_usage *u, struct mk_buf *out);

#endif
