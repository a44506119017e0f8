/* SPDX-License-Identifier: Apache-2.0 */
#include "crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <monkey/buf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/backtrace.h"

enum {
    FRAMES_MAX = 256,
    SHOWN_MAX = 40,
    SERVICE_MAX = 8, /* number of service frames to search for beyond the innermost frames */
    SCANNED = 256 << 10,
    REPORT_MAX = 32 * 1024,
    STACK = 128 * 1024,
    PATIENCE_S = 5,
    NEAR_STACK = 64 << 10,
};

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[MK_LEN(signals)];
static char report[REPORT_MAX];
static const struct duda_backtrace_running *runs;
static bool serves; /* false: exit() ends a server, not a handler */

static void append_frame_line(struct mk_buf *out, const char *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) {
        mk_buf_addf(out, DEV_CRASH_FRAME "? %p\n", (const void *)address);
        return;
    }
    mk_buf_addf(out, DEV_CRASH_FRAME "%s 0x%zx %s\n", info.dli_fname,
                (size_t)(address - (const char *)info.dli_fbase), info.dli_sname ? info.dli_sname : "");
}

/* Returns whether the address belongs to a service, and not to the server, its packages or the system. */
static bool is_service_address(const void *address, const void *ctx)
{
    static const char *const others[] = {"monkey", "lib", "ld-", "ld.", "linux-"};
    Dl_info info;
    (void)ctx;
    if (!dladdr(address, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
    for (size_t i = 0; i < MK_LEN(others); i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

/* Appends the innermost frames, and frames of services at any depth. */
static void append_frames(struct mk_buf *out, void **frames, size_t n, const void *sp)
{
    size_t shown = n < SHOWN_MAX ? n : SHOWN_MAX, own = 0;
    for (size_t i = 0; i < shown; i++) {
        append_frame_line(out, frames[i]);
        own += is_service_address(frames[i], NULL);
    }
    for (size_t i = shown; i < n && own < SERVICE_MAX; i++)
        if (is_service_address(frames[i], NULL)) {
            append_frame_line(out, frames[i]);
            own++;
        }
    size_t found = own || !sp ? 0
                              : duda_backtrace_scan_stack(sp, (const char *)sp + SCANNED, is_service_address,
                                                          NULL, frames, SERVICE_MAX);
    for (size_t i = 0; i < found; i++)
        append_frame_line(out, frames[i]);
}

/* Returns whether the fault is just below the stack pointer, in the guard page. */
static bool is_stack_overflow(int signal, const siginfo_t *info, const void *context)
{
    const char *sp = duda_backtrace_stack_ptr(context), *at = info->si_addr;
    return sp && (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 && at < sp + NEAR_STACK &&
           sp < at + NEAR_STACK;
}

static void append_running_handler(struct mk_buf *out)
{
    void (*describe)(struct mk_buf *) = runs ? runs->describe : NULL;
    const size_t begin = out->len, head = sizeof DEV_CRASH_RUNNING - 1;
    if (!describe)
        return;
    mk_buf_add(out, MK_STR(DEV_CRASH_RUNNING));
    describe(out);
    if (out->len == begin + head)
        out->len = begin; /* no handler runs */
    else
        mk_buf_add_char(out, '\n');
}

static void write_to_stderr(const struct mk_buf *out)
{
    (void)!write(STDERR_FILENO, out->p, out->len);
}

/* The functions called here may hang in a process with corrupted memory; an alarm then kills it. */
static void write_crash_report(int signal, const siginfo_t *info, const void *context)
{
    void *frames[FRAMES_MAX];
    struct mk_buf out = mk_buf_fixed(report, sizeof report);
    (void)alarm(PATIENCE_S);
    size_t n = duda_backtrace_from_signal(context, frames, FRAMES_MAX);
    mk_buf_addf(&out, DEV_CRASH_HEAD "%d %p%s\n", signal, signal == SIGABRT ? NULL : info->si_addr,
                is_stack_overflow(signal, info, context) ? " " DEV_CRASH_OVERFLOW : "");
    append_running_handler(&out);
    append_frames(&out, frames, n, duda_backtrace_stack_ptr(context));
    mk_buf_add(&out, MK_STR(DEV_CRASH_END "\n"));
    write_to_stderr(&out);
}

/* Reports a handler that calls exit(), which ends the worker with all its requests. */
static void on_exit_call(int status, void *ctx)
{
    void *frames[FRAMES_MAX];
    struct mk_buf out = mk_buf_fixed(report, sizeof report);
    (void)ctx;
    if (!serves)
        return;
    mk_buf_add(&out, MK_STR(DEV_CRASH_HEAD DEV_CRASH_EXIT));
    if (status >= 0)
        mk_buf_addf(&out, " %d", status);
    mk_buf_add_char(&out, '\n');
    append_running_handler(&out);
    size_t n = duda_backtrace_here(frames, FRAMES_MAX), own = 0;
    while (own < n && !is_service_address(frames[own], NULL)) /* skips frames of this file and of exit() */
        own++;
    append_frames(&out, frames + own, n - own, NULL);
    mk_buf_add(&out, MK_STR(DEV_CRASH_END "\n"));
    write_to_stderr(&out);
}

/* C libraries other than glibc lack on_exit(). */
int on_exit(void (*fn)(int status, void *ctx), void *ctx) __attribute__((weak));

static void on_exit_call_without_status(void)
{
    on_exit_call(-1, NULL);
}

static bool install_exit_hook(void)
{
    return (on_exit ? on_exit(on_exit_call, NULL) : atexit(on_exit_call_without_status)) == 0;
}

/* Writes the report, restores the previous signal actions and returns. The faulting instruction then runs
 * again and raises the signal once more, for the previous action. */
static void on_crash_signal(int signal, siginfo_t *info, void *context)
{
    for (size_t i = 0; i < MK_LEN(signals); i++) /* restores all: a second crash would be a consequence */
        (void)sigaction(signals[i], &before[i], NULL);
    write_crash_report(signal, info, context);
    if (info->si_code <= 0) /* sent by a process: the instruction will not raise it again */
        (void)raise(signal);
}

/* Installs an alternate stack, because a stack overflow can only be reported on another stack. */
static int install_alternate_stack(void)
{
    stack_t now, own = {.ss_size = STACK};
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE) && now.ss_size >= STACK)
        return 0;
    own.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own.ss_sp == MAP_FAILED)
        return -errno;
    return sigaltstack(&own, NULL) < 0 ? -errno : 0;
}

void dev_crash_preload(void)
{
    duda_backtrace_preload();
}

int dev_crash_install_handlers(const struct duda_backtrace_running *running)
{
    runs = running;
    struct sigaction action = {.sa_sigaction = on_crash_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int e = install_alternate_stack();
    for (size_t i = 0; !e && i < MK_LEN(signals); i++)
        e = sigaction(signals[i], &action, &before[i]) < 0 ? -errno : 0;
    serves = !e && install_exit_hook();
    return e;
}

void dev_crash_ignore_exit(void)
{
    serves = false;
}
