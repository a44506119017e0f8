/* SPDX-License-Identifier: Apache-2.0 */
#include "service/crash_report.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/crash_table.h"
#include "service/memory_limit.h"
#include "service/route_table.h"
#include "trace/backtrace.h"

enum { ALTERNATE = 64 << 10, FRAMES = 256, SHOWN = 24, OWN_SHOWN = 4, REPORT_MAX = 12 << 10 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static struct sigaction before[MK_LEN(signals)];
static atomic_uint n_watching; /* number of threads: the signal actions are per process */

static __thread struct {
    struct duda_worker_ctx *worker_ctx;
    void *alternate;
    stack_t before;
} here;

/* ---- The report ---- */

/* Publishes the report written so far: the next step may crash, too. */
static void publish_report_len(struct duda_crash_slot *crash_slot, struct mk_buf *out)
{
    atomic_store(&crash_slot->len, (uint32_t)out->len);
}

static const char *file_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

static void append_frame(struct mk_buf *out, size_t i, const void *at)
{
    Dl_info info = {0};
    if (!dladdr(at, &info) || !info.dli_fname) {
        mk_buf_addf(out, "\n  #%zu %p", i, at);
        return;
    }
    mk_buf_addf(out, "\n  #%zu %s+0x%zx", i, file_base_name(info.dli_fname),
                (size_t)((const char *)at - (const char *)info.dli_fbase));
    if (info.dli_sname)
        mk_buf_addf(out, " in %s()", info.dli_sname);
}

static const void *object_of_address(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static bool is_in_object(const void *address, const void *object)
{
    return object && object_of_address(address) == object;
}

/* Returns the handler function of the route, which is in the shared object of the service. */
static const void *handler_function(struct duda_ctx *d)
{
    return (const void *)(uintptr_t)d->route_entry->route->fn;
}

static size_t scan_stack_for_frames(struct duda_ctx *d, const void *from, const void *object, void **frames,
                                    size_t max)
{
    const struct duda_stack *stack = d->fiber ? duda_fiber_stack(d->fiber) : NULL;
    const char *at = from;
    bool is_there = stack && at >= stack->low && at < stack->low + stack->size;
    return is_there
               ? duda_backtrace_scan_stack(from, stack->low + stack->size, is_in_object, object, frames, max)
               : 0;
}

/* Appends the innermost frames. If none of them is in the service, the report would not show what to fix, so
 * also appends the innermost frames of the service, however deep. */
static void append_frames(struct duda_ctx *d, struct mk_buf *out, void **frames, size_t n, const void *sp)
{
    const void *service = object_of_address(handler_function(d));
    size_t shown = n < SHOWN ? n : SHOWN, own = 0;
    for (size_t i = 0; i < shown && !out->failed; i++) {
        append_frame(out, i, frames[i]);
        publish_report_len(d->worker_ctx->crash_slot, out);
        own += is_in_object(frames[i], service);
    }
    if (own)
        return;
    for (size_t i = shown; i < n && own < OWN_SHOWN; i++)
        if (is_in_object(frames[i], service)) {
            append_frame(out, i, frames[i]);
            own++;
        }
    size_t found = own ? 0 : scan_stack_for_frames(d, sp, service, frames, OWN_SHOWN);
    for (size_t i = 0; i < found; i++)
        append_frame(out, n + i, frames[i]);
    publish_report_len(d->worker_ctx->crash_slot, out);
}

static void append_backtrace(struct duda_ctx *d, struct mk_buf *out, const void *context)
{
    void *frames[FRAMES];
    size_t n = duda_backtrace_from_signal(context, frames, FRAMES);
    append_frames(d, out, frames, n, duda_backtrace_stack_ptr(context));
}

/* Finds the call in which the thread is blocked. The end of its stack is unknown: only the return address
 * nearest the top is certain to belong to an active call, the one that the handler made. */
static const char *find_blocking_call(struct duda_ctx *d)
{
    void *frames[FRAMES];
    const struct duda_stack *stack = d->fiber ? duda_fiber_stack(d->fiber) : NULL;
    size_t n =
        stack ? scan_stack_for_frames(d, stack->low, object_of_address(handler_function(d)), frames, FRAMES)
              : 0;
    return n ? frames[n - 1] : NULL;
}

static struct mk_buf begin_report(struct duda_ctx *d, const char *problem, const char *more)
{
    struct duda_crash_slot *crash_slot = d->worker_ctx->crash_slot;
    const struct duda_route *route = duda_ctx_runs_error_handlers(d) ? d->middleware : d->route_entry->route;
    struct mk_buf out = mk_buf_fixed(crash_slot->report, sizeof crash_slot->report);
    mk_buf_addf(&out, "%s() in %s:%d %s%s", route->name, route->file, route->line, problem, more);
    publish_report_len(crash_slot, &out);
    mk_buf_addf(&out, "; %s %.*s", d->request ? "route" : "job", MK_STR_ARG(d->route_entry->pattern));
    publish_report_len(crash_slot, &out);
    if (!d->request)
        return out;
    mk_buf_add(&out, MK_STR(", request "));
    mk_log_escape_to(&out, mk_request_method_text(d->request), out.len + 32);
    mk_buf_add_char(&out, ' ');
    mk_log_escape_to(&out, mk_request_target(d->request), out.len + 256);
    publish_report_len(crash_slot, &out);
    return out;
}

void duda_crash_report_describe(struct mk_buf *out)
{
    const struct duda_ctx *d = here.worker_ctx ? here.worker_ctx->runs : NULL;
    if (!d)
        return;
    if (!d->request) {
        mk_buf_addf(out, "the job %.*s", MK_STR_ARG(d->route_entry->pattern));
        return;
    }
    mk_buf_add(out, MK_STR("the handler of "));
    mk_log_escape_to(out, mk_request_method_text(d->request), out->len + 32);
    mk_buf_add_char(out, ' ');
    mk_log_escape_to(out, mk_request_target(d->request), out->len + 256);
}

static void write_crash_report(const char *problem, const char *more, const void *context)
{
    struct duda_ctx *d = here.worker_ctx ? here.worker_ctx->runs : NULL;
    if (!d || !d->worker_ctx->crash_slot)
        return;
    struct mk_buf out = begin_report(d, problem, more);
    append_backtrace(d, &out, context);
}

/* ---- For developers ---- */

/* Prints the report at once, because the handler may never return, and discards the report for the log. The
 * first address is the address of an instruction, not a return address. */
static void print_report_to_developer(struct duda_ctx *d, const char *problem, void **frames, size_t n)
{
    char buf[REPORT_MAX];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf - 1), head = begin_report(d, problem, "");
    mk_buf_addf(&out, DUDA_BACKTRACE_STALL "%.*s\n", MK_STR_ARG(mk_buf_str(&head)));
    atomic_store(&d->worker_ctx->crash_slot->len, 0);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) && info.dli_fname)
            mk_buf_addf(&out, DUDA_BACKTRACE_FRAME "%s 0x%zx %s\n", info.dli_fname,
                        (size_t)((const char *)frames[i] - (const char *)info.dli_fbase),
                        info.dli_sname ? info.dli_sname : "");
    }
    mk_buf_add(&out, MK_STR(DUDA_BACKTRACE_END "\n"));
    (void)!write(STDERR_FILENO, out.p, out.len);
}

static bool is_dev_mode(struct duda_ctx *d)
{
    return d && d->worker_ctx->crash_slot && d->worker_ctx->rules->tries;
}

/* ---- Crashes ---- */

static const char *crash_signal_name(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGILL:
        return "SIGILL";
    case SIGFPE:
        return "SIGFPE";
    default:
        return "SIGABRT";
    }
}

/* Returns whether the handler has overflowed its stack. */
static bool is_stack_overflow(const void *address)
{
    for (size_t i = 0; here.worker_ctx && i < MK_LEN(here.worker_ctx->stacks); i++)
        if (here.worker_ctx->stacks[i] && duda_stack_pool_find_by_guard(here.worker_ctx->stacks[i], address))
            return true;
    return false;
}

/* Appends a hint: the handler probably used the NULL that a failed allocation returned. */
static void append_failed_allocation_hint(char *more, size_t cap)
{
    char limit[64];
    size_t len = strlen(more);
    duda_memory_limit_format(limit, sizeof limit);
    if (*limit)
        snprintf(more + len, cap - len, " after an allocation had failed: %s", limit);
}

static void on_crash_signal(int number, siginfo_t *info, void *context)
{
    char more[192] = "";
    int error = errno; /* error of the last failed call before the signal */
    bool faults = info->si_code > 0 && (number == SIGSEGV || number == SIGBUS);
    if (faults && is_stack_overflow(info->si_addr))
        snprintf(more, sizeof more, " because its stack is full: give the route a larger `.stack`");
    else if (faults)
        snprintf(more, sizeof more, " at the address %p", info->si_addr);
    if (error == ENOMEM)
        append_failed_allocation_hint(more, sizeof more);
    char problem[32];
    snprintf(problem, sizeof problem, "crashed with %s", crash_signal_name(number));
    write_crash_report(problem, more, context);
    /* Restores the previous actions: returning repeats the instruction, and the previous handler runs or the
     * process dies. */
    for (size_t i = 0; i < MK_LEN(signals); i++)
        sigaction(signals[i], &before[i], NULL);
    if (info->si_code <= 0)
        raise(number);
}

static void install_signal_handlers(void)
{
    struct sigaction ours = {.sa_sigaction = on_crash_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < MK_LEN(signals); i++)
        sigaction(signals[i], &ours, &before[i]);
}

static void restore_signal_handlers(void)
{
    for (size_t i = 0; i < MK_LEN(signals); i++)
        sigaction(signals[i], &before[i], NULL);
}

/* ---- In a worker ---- */

void duda_crash_report_preload(void)
{
    duda_backtrace_preload();
}

void duda_crash_report_install(struct duda_worker_ctx *worker_ctx)
{
    here.worker_ctx = worker_ctx;
    here.alternate = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t own = {.ss_sp = here.alternate, .ss_size = ALTERNATE};
    if (here.alternate == MAP_FAILED || sigaltstack(&own, &here.before)) {
        here.alternate = NULL; /* a stack overflow then ends without a report */
    }
    if (atomic_fetch_add(&n_watching, 1) == 0)
        install_signal_handlers();
}

void duda_crash_report_uninstall(void)
{
    if (!here.worker_ctx)
        return;
    if (atomic_fetch_sub(&n_watching, 1) == 1)
        restore_signal_handlers();
    if (here.alternate) {
        sigaltstack(&here.before, NULL);
        munmap(here.alternate, ALTERNATE);
    }
    here.worker_ctx = NULL;
    here.alternate = NULL;
}

void duda_crash_report_write(const char *problem, const void *context)
{
    void *frames[FRAMES];
    struct duda_ctx *d = here.worker_ctx ? here.worker_ctx->runs : NULL;
    if (is_dev_mode(d))
        print_report_to_developer(d, problem, frames, duda_backtrace_from_signal(context, frames, FRAMES));
    else
        write_crash_report(problem, "", context);
}

void duda_crash_report_write_blocked(const struct duda_worker_ctx *worker_ctx, const char *problem)
{
    struct duda_ctx *d = worker_ctx->runs;
    if (!d || !worker_ctx->crash_slot)
        return;
    const char *at = find_blocking_call(d);
    void *call = at ? (void *)(uintptr_t)(at - 1) : NULL;
    if (is_dev_mode(d)) {
        print_report_to_developer(d, problem, &call, at != NULL);
        return;
    }
    struct mk_buf out = begin_report(d, problem, "");
    if (at)
        append_frame(&out, 1, at);
    publish_report_len(worker_ctx->crash_slot, &out);
}

void duda_crash_report_warn(const struct duda_worker_ctx *worker_ctx, const char *problem)
{
    char buf[REPORT_MAX];
    struct duda_ctx *d = worker_ctx->runs;
    if (!d || !worker_ctx->crash_slot)
        return;
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf), head = begin_report(d, problem, "");
    mk_buf_addf(&out, "warning: %.*s\n", MK_STR_ARG(mk_buf_str(&head)));
    atomic_store(&worker_ctx->crash_slot->len, 0);
    (void)!write(STDERR_FILENO, out.p, out.len);
}
