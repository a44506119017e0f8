/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/backtrace.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum { SKIPPED_MAX = 12, WORDS = 128, FRAME_MAX = 1 << 20 };

void duda_backtrace_preload(void)
{
    void *warm[1];
    (void)backtrace(warm, 1);
}

/* ---- Registers ---- */

struct registers {
    uintptr_t instruction, stack, frame;
    uintptr_t link; /* return address; 0: it is on the stack */
};

static struct registers read_registers(const void *context)
{
    const ucontext_t *c = context;
#if defined(__x86_64__)
    return (struct registers){(uintptr_t)c->uc_mcontext.gregs[REG_RIP],
                              (uintptr_t)c->uc_mcontext.gregs[REG_RSP],
                              (uintptr_t)c->uc_mcontext.gregs[REG_RBP], 0};
#elif defined(__aarch64__)
    return (struct registers){(uintptr_t)c->uc_mcontext.pc, (uintptr_t)c->uc_mcontext.sp,
                              (uintptr_t)c->uc_mcontext.regs[29], (uintptr_t)c->uc_mcontext.regs[30]};
#else
    (void)c;
    return (struct registers){0, 0, 0, 0};
#endif
}

const void *duda_backtrace_instruction_ptr(const void *context)
{
    return (const void *)read_registers(context).instruction;
}

const void *duda_backtrace_stack_ptr(const void *context)
{
    return (const void *)read_registers(context).stack;
}

/* ---- Memory ---- */

/* Reads through the kernel: pointers of a crashed process may be invalid. */
static bool read_memory_safely(uintptr_t from, void *to, size_t size)
{
    struct iovec ours = {to, size}, theirs = {(void *)from, size};
    return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

static bool is_code_address(uintptr_t address)
{
    Dl_info info;
    return address && dladdr((const void *)address, &info) && info.dli_fname;
}

static bool follows_call_instruction(uintptr_t address)
{
#if defined(__x86_64__)
    unsigned char b[7];
    static const unsigned char lengths[] = {2, 3, 4, 6, 7}; /* of indirect calls, in bytes */
    if (!read_memory_safely(address - sizeof b, b, sizeof b))
        return false;
    if (b[sizeof b - 5] == 0xe8)
        return true;
    for (size_t i = 0; i < sizeof lengths; i++)
        if (b[sizeof b - lengths[i]] == 0xff && (b[sizeof b - lengths[i] + 1] & 0x38) == 0x10)
            return true;
    return false;
#elif defined(__aarch64__)
    uint32_t word;
    return read_memory_safely(address - sizeof word, &word, sizeof word) &&
           ((word & 0xfc000000u) == 0x94000000u || (word & 0xfffffc1fu) == 0xd63f0000u);
#else
    (void)address;
    return false;
#endif
}

/* ---- Frames ---- */

/* Follows frame pointers: each frame begins with the caller's frame pointer and the return address. */
static size_t walk_frame_pointers(const struct registers *r, void **frames, size_t n, size_t max)
{
    uintptr_t at = r->frame, last = r->stack, words[2], back = r->link;
    if (n < max && !is_code_address(r->instruction)) { /* a call to a bad address has no frame */
        if (!back && !read_memory_safely(r->stack, &back, sizeof back))
            return n;
        if (is_code_address(back))
            frames[n++] = (void *)back;
    }
    while (n < max && at >= last && at - last < FRAME_MAX && at % sizeof at == 0 &&
           read_memory_safely(at, words, sizeof words) && is_code_address(words[1])) {
        frames[n++] = (void *)words[1];
        last = at + 1;
        at = words[0];
    }
    return n;
}

/* Skips the frames of the signal handler, down to the interrupted function. */
static size_t drop_signal_handler_frames(void **frames, size_t n, void *at)
{
    size_t first = 0;
    while (first < n && first < SKIPPED_MAX && frames[first] != at)
        first++;
    if (first == n || frames[first] != at) {
        frames[0] = at;
        return 1;
    }
    memmove(frames, frames + first, (n - first) * sizeof *frames);
    return n - first;
}

size_t duda_backtrace_from_signal(const void *context, void **frames, size_t max)
{
    const struct registers r = read_registers(context);
    int found = backtrace(frames, (int)max);
    size_t n = found > 0 ? (size_t)found : 0;
    if (!r.stack) /* unsupported processor: the frames of the signal handler remain */
        return n;
    n = drop_signal_handler_frames(frames, n, (void *)r.instruction);
    return n > 1 ? n : walk_frame_pointers(&r, frames, n, max);
}

size_t duda_backtrace_here(void **frames, size_t max)
{
    int n = backtrace(frames, (int)max);
    return n > 0 ? (size_t)n : 0;
}

size_t duda_backtrace_scan_stack(const void *from, const void *to,
                                 bool (*is_wanted)(const void *address, const void *ctx), const void *ctx,
                                 void **frames, size_t max)
{
    uintptr_t at = ((uintptr_t)from + sizeof at - 1) & ~(sizeof at - 1), end = (uintptr_t)to, words[WORDS];
    size_t n = 0;
    while (at < end && n < max) {
        size_t left = (end - at) / sizeof *words, count = left < WORDS ? left : WORDS;
        if (!count || !read_memory_safely(at, words, count * sizeof *words))
            break;
        for (size_t i = 0; i < count && n < max; i++)
            if (words[i] && is_wanted((const void *)words[i], ctx) && follows_call_instruction(words[i]))
                frames[n++] = (void *)words[i];
        at += count * sizeof *words;
    }
    return n;
}
