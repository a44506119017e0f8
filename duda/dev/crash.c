/* SPDX-License-Identifier: Apache-2.0 */
#include "crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <monkey/buf.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { FRAMES_MAX = 48, REPORT_MAX = 32 * 1024, STACK = 128 * 1024, PATIENCE_S = 5, OWN_FRAMES_MAX = 6 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[MK_LEN(signals)];
static char report[REPORT_MAX];

static void add_frame(struct mk_buf *out, const char *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) {
        mk_buf_addf(out, DEV_CRASH_FRAME "? %p\n", (const void *)address);
        return;
    }
    mk_buf_addf(out, DEV_CRASH_FRAME "%s 0x%zx %s\n", info.dli_fname,
                (size_t)(address - (const char *)info.dli_fbase), info.dli_sname ? info.dli_sname : "");
}

static const void *place_of(const void *context)
{
    const ucontext_t *c = context;
#if defined(__x86_64__)
    return (const void *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)(uintptr_t)c->uc_mcontext.pc;
#else
    (void)c;
    return NULL;
#endif
}

static bool is_own(const void *frame)
{
    Dl_info own, one;
    return dladdr(report, &own) && dladdr(frame, &one) && one.dli_fbase == own.dli_fbase;
}

/* The first frames are of this file; the next one is the return from the handler of the signal; then comes
 * the instruction that failed. A call through a wrong pointer has no frame of its own. */
static int skip_own(void *const *frames, int n, const void *place)
{
    int i = 0;
    for (int k = 0; k < n && k < 2 * OWN_FRAMES_MAX; k++)
        if (frames[k] == place)
            return k;
    while (i < n && i < OWN_FRAMES_MAX && !is_own(frames[i]))
        i++;
    while (i < n && i < OWN_FRAMES_MAX && is_own(frames[i]))
        i++;
    return i + 1;
}

/* What is called here may hang in a process whose memory is broken: the alarm ends it then. */
static void write_report(int signal, const siginfo_t *info, const void *context)
{
    void *frames[FRAMES_MAX];
    struct mk_buf out = mk_buf_fixed(report, sizeof report);
    (void)alarm(PATIENCE_S);
    int n = backtrace(frames, FRAMES_MAX);
    mk_buf_addf(&out, DEV_CRASH_HEAD "%d %p\n", signal, signal == SIGABRT ? NULL : info->si_addr);
    for (int i = skip_own(frames, n, place_of(context)); i < n; i++)
        add_frame(&out, frames[i]);
    mk_buf_add(&out, MK_STR(DEV_CRASH_END "\n"));
    (void)!write(STDERR_FILENO, out.p, out.len);
}

/* Returning leads to the same instruction again, and so to what was there before us. */
static void on_crash(int signal, siginfo_t *info, void *context)
{
    for (size_t i = 0; i < MK_LEN(signals); i++) /* of all: what comes now follows from this one */
        (void)sigaction(signals[i], &before[i], NULL);
    write_report(signal, info, context);
    if (info->si_code <= 0) /* sent by a process: nothing happens again by itself */
        (void)raise(signal);
}

/* An overflow of the stack needs another one to be reported. */
static int use_own_stack(void)
{
    stack_t now, own = {.ss_size = STACK};
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE) && now.ss_size >= STACK)
        return 0;
    own.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own.ss_sp == MAP_FAILED)
        return -errno;
    return sigaltstack(&own, NULL) < 0 ? -errno : 0;
}

/* backtrace() loads libgcc_s the first time, which the sandbox of a worker refuses. */
void dev_crash_prepare(void)
{
    void *frames[1];
    (void)backtrace(frames, 1);
}

int dev_crash_watch(void)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int e = use_own_stack();
    for (size_t i = 0; !e && i < MK_LEN(signals); i++)
        e = sigaction(signals[i], &action, &before[i]) < 0 ? -errno : 0;
    return e;
}
