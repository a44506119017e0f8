/* SPDX-License-Identifier: Apache-2.0 */
#include "service/thread_usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_SIZE = 512, ASLEEP_US = 200 };

/* ---- Files of /proc ---- */

static int open_thread_file(const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)gettid(), name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

void duda_thread_files_open(struct duda_thread_files *f)
{
    f->stat = open_thread_file("stat");
    f->schedstat = open_thread_file("schedstat");
}

void duda_thread_files_close(struct duda_thread_files *f)
{
    if (f->stat >= 0)
        close(f->stat);
    if (f->schedstat >= 0)
        close(f->schedstat);
    f->stat = f->schedstat = -1;
}

/* Returns the beginning of the file. */
static mk_str read_file(int fd, char text[TEXT_SIZE])
{
    ssize_t n = fd >= 0 ? pread(fd, text, TEXT_SIZE, 0) : 0;
    return mk_str_of(text, n > 0 ? (size_t)n : 0);
}

void duda_thread_files_read(const struct duda_thread_files *f, struct duda_thread_sample *out)
{
    char stat[TEXT_SIZE], schedstat[TEXT_SIZE];
    duda_thread_files_parse(read_file(f->stat, stat), read_file(f->schedstat, schedstat), out);
}

static enum duda_thread_state parse_state(char c)
{
    switch (c) {
    case 'R':
        return DUDA_THREAD_RUNNABLE;
    case 'S':
    case 'D':
    case 'I':
        return DUDA_THREAD_BLOCKED;
    case 'T':
    case 't':
        return DUDA_THREAD_STOPPED;
    default:
        return DUDA_THREAD_UNKNOWN;
    }
}

void duda_thread_files_parse(mk_str stat, mk_str schedstat, struct duda_thread_sample *out)
{
    size_t name_end = mk_str_find_last(stat, ')'); /* the name of a program may contain parentheses */
    uint64_t ns;
    bool has_state = name_end != MK_STR_NONE && name_end + 2 < stat.len;
    out->state = has_state ? parse_state(stat.p[name_end + 2]) : DUDA_THREAD_UNKNOWN;
    (void)mk_str_word(&schedstat);
    out->queued_us = mk_num_parse(mk_str_word(&schedstat), &ns) ? ns / 1000 : 0;
}

/* ---- Sums ---- */

static uint64_t difference(uint64_t before, uint64_t after, uint64_t max)
{
    uint64_t n = after > before ? after - before : 0;
    return n < max ? n : max;
}

void duda_thread_usage_add(struct duda_thread_usage *u, const struct duda_thread_sample *before,
                           const struct duda_thread_sample *after, uint64_t tick_us)
{
    uint64_t time = difference(before->time_us, after->time_us, UINT64_MAX);
    uint64_t cpu = difference(before->cpu_us, after->cpu_us, time);
    uint64_t queued = difference(before->queued_us, after->queued_us, time - cpu);
    uint64_t rest = time - cpu - queued; /* the thread was blocked, or still is in the run queue */
    bool is_blocked = after->state == DUDA_THREAD_BLOCKED ||
                      (after->state == DUDA_THREAD_UNKNOWN && cpu < ASLEEP_US && time < tick_us * 3 / 2);
    u->computed_us += cpu;
    u->queued_us += queued;
    if (is_blocked)
        u->blocked_us += rest;
    else if (after->state != DUDA_THREAD_STOPPED)
        u->queued_us += rest;
}

enum duda_usage_verdict duda_thread_usage_judge(const struct duda_thread_usage *u, uint64_t own_us,
                                                uint64_t queued_us)
{
    return duda_thread_usage_own_us(u) >= own_us ? DUDA_USAGE_BLOCKS
           : u->queued_us >= queued_us           ? DUDA_USAGE_STARVED
                                                 : DUDA_USAGE_FINE;
}

void duda_thread_usage_format(const struct duda_thread_usage *u, struct mk_buf *out)
{
    mk_buf_addf(out,
                "computed for %llu ms, blocked in system calls for %llu ms, without a processor for %llu ms",
                (unsigned long long)u->computed_us / 1000, (unsigned long long)u->blocked_us / 1000,
                (unsigned long long)u->queued_us / 1000);
}
