/* SPDX-License-Identifier: Apache-2.0 */
#include "service/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/board.h"
#include "service/table.h"
#include "trace/limit.h"
#include "trace/trace.h"

enum { ALTERNATE = 64 << 10, FRAMES = 256, SHOWN = 24, OWN_SHOWN = 4, TOLD = 12 << 10 };

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static struct sigaction before[MK_LEN(signals)];
static atomic_uint n_watching; /* threads: the actions are the process's */

static __thread struct {
    struct duda_home *home;
    void *alternate;
    stack_t before;
} here;

/* ---- What it says ---- */

/* So that what was written counts even if the next step crashes, too. */
static void keep(struct duda_post *post, struct mk_buf *out)
{
    atomic_store(&post->len, (uint32_t)out->len);
}

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

static void add_frame(struct mk_buf *out, size_t i, const void *at)
{
    Dl_info info = {0};
    if (!dladdr(at, &info) || !info.dli_fname) {
        mk_buf_addf(out, "\n  #%zu %p", i, at);
        return;
    }
    mk_buf_addf(out, "\n  #%zu %s+0x%zx", i, last_part(info.dli_fname),
                (size_t)((const char *)at - (const char *)info.dli_fbase));
    if (info.dli_sname)
        mk_buf_addf(out, " in %s()", info.dli_sname);
}

static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static bool is_in(const void *address, const void *object)
{
    return object && object_of(address) == object;
}

/* The function that was given for the route: it is in the object of the service. */
static const void *function_of(const struct duda *d)
{
    return (const void *)(uintptr_t)d->line->route->fn;
}

static size_t scan(const struct duda *d, const void *from, const void *object, void **frames, size_t max)
{
    const struct duda_stack *stack = d->fiber ? duda_fiber_stack(d->fiber) : NULL;
    const char *at = from;
    bool is_there = stack && at >= stack->low && at < stack->low + stack->size;
    return is_there ? duda_trace_scan(from, stack->low + stack->size, is_in, object, frames, max) : 0;
}

/* Without a frame of the service nobody knows what to mend: the innermost ones follow, however deep they are. */
static void add_frames(const struct duda *d, struct mk_buf *out, void **frames, size_t n, const void *sp)
{
    const void *service = object_of(function_of(d));
    size_t shown = n < SHOWN ? n : SHOWN, own = 0;
    for (size_t i = 0; i < shown && !out->failed; i++) {
        add_frame(out, i, frames[i]);
        keep(d->home->post, out);
        own += is_in(frames[i], service);
    }
    if (own)
        return;
    for (size_t i = shown; i < n && own < OWN_SHOWN; i++)
        if (is_in(frames[i], service)) {
            add_frame(out, i, frames[i]);
            own++;
        }
    size_t found = own ? 0 : scan(d, sp, service, frames, OWN_SHOWN);
    for (size_t i = 0; i < found; i++)
        add_frame(out, n + i, frames[i]);
    keep(d->home->post, out);
}

static void add_stack(const struct duda *d, struct mk_buf *out, const void *context)
{
    void *frames[FRAMES];
    size_t n = duda_trace(context, frames, FRAMES);
    add_frames(d, out, frames, n, duda_trace_stack(context));
}

/* The thread of that stack is blocked in a call. Where its stack ends is not known: only the return address next to the top is
 * surely that of a call under way, which the handler has made. */
static const char *find_blocked(const struct duda *d)
{
    void *frames[FRAMES];
    const struct duda_stack *stack = d->fiber ? duda_fiber_stack(d->fiber) : NULL;
    size_t n = stack ? scan(d, stack->low, object_of(function_of(d)), frames, FRAMES) : 0;
    return n ? frames[n - 1] : NULL;
}

static struct mk_buf begin_report(const struct duda *d, const char *what, const char *more)
{
    struct duda_post *post = d->home->post;
    const struct duda_route *route = d->line->route;
    struct mk_buf out = mk_buf_fixed(post->report, sizeof post->report);
    mk_buf_addf(&out, "%s() in %s:%d %s%s", route->name, route->file, route->line, what, more);
    keep(post, &out);
    mk_buf_addf(&out, "; %s %.*s", d->request ? "route" : "job", MK_STR_ARG(d->line->pattern));
    keep(post, &out);
    if (!d->request)
        return out;
    mk_buf_add(&out, MK_STR(", request "));
    mk_log_escape_to(&out, mk_request_method_text(d->request), out.len + 32);
    mk_buf_add_char(&out, ' ');
    mk_log_escape_to(&out, mk_request_target(d->request), out.len + 256);
    keep(post, &out);
    return out;
}

static void describe(const char *what, const char *more, const void *context)
{
    const struct duda *d = here.home ? here.home->runs : NULL;
    if (!d || !d->home->post)
        return;
    struct mk_buf out = begin_report(d, what, more);
    add_stack(d, &out, context);
}

/* ---- For who tries it ---- */

/* At once, because the handler may never return, and instead of the report for the log. The first address is that of an
 * instruction. */
static void tell_developer(const struct duda *d, const char *what, void **frames, size_t n)
{
    char room[TOLD];
    struct mk_buf out = mk_buf_fixed(room, sizeof room - 1), head = begin_report(d, what, "");
    mk_buf_addf(&out, DUDA_TRACE_HELD "%.*s\n", MK_STR_ARG(mk_buf_str(&head)));
    atomic_store(&d->home->post->len, 0);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) && info.dli_fname)
            mk_buf_addf(&out, DUDA_TRACE_FRAME "%s 0x%zx %s\n", info.dli_fname,
                        (size_t)((const char *)frames[i] - (const char *)info.dli_fbase),
                        info.dli_sname ? info.dli_sname : "");
    }
    mk_buf_add(&out, MK_STR(DUDA_TRACE_END "\n"));
    (void)!write(STDERR_FILENO, out.p, out.len);
}

static bool is_tried(const struct duda *d)
{
    return d && d->home->post && d->home->rules->tries;
}

/* ---- Crashes ---- */

static const char *name_of(int number)
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

/* Has the handler used up its stack? */
static bool is_overflow(const void *address)
{
    for (size_t i = 0; here.home && i < MK_LEN(here.home->stacks); i++)
        if (here.home->stacks[i] && duda_stacks_guarded(here.home->stacks[i], address))
            return true;
    return false;
}

/* The handler has asked for memory and used what it did not get, it seems. */
static void add_memory(char *more, size_t cap)
{
    char limit[64];
    size_t len = strlen(more);
    duda_limit_print(limit, sizeof limit);
    if (*limit)
        snprintf(more + len, cap - len, " when memory was out: %s", limit);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    char more[192] = "";
    int error = errno; /* of the last call that failed before */
    bool faults = info->si_code > 0 && (number == SIGSEGV || number == SIGBUS);
    if (faults && is_overflow(info->si_addr))
        snprintf(more, sizeof more, " because its stack is full: give the route a larger `.stack`");
    else if (faults)
        snprintf(more, sizeof more, " at the address %p", info->si_addr);
    if (error == ENOMEM)
        add_memory(more, sizeof more);
    char what[32];
    snprintf(what, sizeof what, "crashed with %s", name_of(number));
    describe(what, more, context);
    /* Whoever handled it before us comes next, or the process ends: the instruction is tried again. */
    for (size_t i = 0; i < MK_LEN(signals); i++)
        sigaction(signals[i], &before[i], NULL);
    if (info->si_code <= 0)
        raise(number);
}

static void catch_signals(void)
{
    struct sigaction ours = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < MK_LEN(signals); i++)
        sigaction(signals[i], &ours, &before[i]);
}

static void release_signals(void)
{
    for (size_t i = 0; i < MK_LEN(signals); i++)
        sigaction(signals[i], &before[i], NULL);
}

/* ---- In a worker ---- */

void duda_crash_prepare(void)
{
    duda_trace_prepare();
}

void duda_crash_start(struct duda_home *home)
{
    here.home = home;
    here.alternate = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t own = {.ss_sp = here.alternate, .ss_size = ALTERNATE};
    if (here.alternate == MAP_FAILED || sigaltstack(&own, &here.before)) {
        here.alternate = NULL; /* then an overflow ends without a report */
    }
    if (atomic_fetch_add(&n_watching, 1) == 0)
        catch_signals();
}

void duda_crash_stop(void)
{
    if (!here.home)
        return;
    if (atomic_fetch_sub(&n_watching, 1) == 1)
        release_signals();
    if (here.alternate) {
        sigaltstack(&here.before, NULL);
        munmap(here.alternate, ALTERNATE);
    }
    here.home = NULL;
    here.alternate = NULL;
}

void duda_crash_describe(const char *what, const void *context)
{
    void *frames[FRAMES];
    const struct duda *d = here.home ? here.home->runs : NULL;
    if (is_tried(d))
        tell_developer(d, what, frames, duda_trace(context, frames, FRAMES));
    else
        describe(what, "", context);
}

void duda_crash_describe_blocked(const struct duda_home *home, const char *what)
{
    const struct duda *d = home->runs;
    if (!d || !home->post)
        return;
    const char *at = find_blocked(d);
    void *call = (void *)(uintptr_t)(at - 1);
    if (is_tried(d)) {
        tell_developer(d, what, &call, at != NULL);
        return;
    }
    struct mk_buf out = begin_report(d, what, "");
    if (at)
        add_frame(&out, 1, at);
    keep(home->post, &out);
}
