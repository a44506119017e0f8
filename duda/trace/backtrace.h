/* SPDX-License-Identifier: Apache-2.0 */
/* Call stacks for crash reports. As async-signal-safe as backtrace(3) and dladdr(3). Independent of services
 * and servers. */
#ifndef DUDA_TRACE_BACKTRACE_H
#define DUDA_TRACE_BACKTRACE_H

#include <monkey/buf.h>
#include <stdbool.h>
#include <stddef.h>

/* The stall report that a worker writes to standard error during development, and `monkey run` completes with
 * source lines: a DUDA_BACKTRACE_STALL line with a description, a DUDA_BACKTRACE_FRAME line for each frame,
 * innermost first (file, offset in the file, and function if known), and a DUDA_BACKTRACE_END line. */
#define DUDA_BACKTRACE_STALL "duda-dev: held "
#define DUDA_BACKTRACE_FRAME "duda-dev: frame "
#define DUDA_BACKTRACE_END   "duda-dev: end"

/* Shared by Duda, which runs the handlers of this process, and the crash reporter of `monkey run`: appends
 * what runs, such as "the handler of GET /". Async-signal-safe. Memory of mk_config_shared(). */
#define DUDA_BACKTRACE_RUNNING "duda/running"
struct duda_backtrace_running {
    void (*_Atomic describe)(struct mk_buf *out);
};

/* backtrace(3) loads libgcc_s on its first call, which the sandbox of a worker forbids: call this before the
 * sandbox starts. */
void duda_backtrace_preload(void);

/* Returns the interrupted instruction, from the context (ucontext_t) of a signal; NULL on an unsupported
 * processor. */
const void *duda_backtrace_instruction_ptr(const void *context);
/* Like duda_backtrace_instruction_ptr(), but returns the stack pointer. */
const void *duda_backtrace_stack_ptr(const void *context);

/* Fills `frames` with the interrupted instruction, then the return addresses, innermost first. Without unwind
 * tables, or after a call to an invalid address, it follows frame pointers. */
size_t duda_backtrace_from_signal(const void *context, void **frames, size_t max);
/* Fills `frames` for the caller of this function, with return addresses only. */
size_t duda_backtrace_here(void **frames, size_t max);

/* Scans the words in [from, to) for return addresses that follow a call instruction and that `is_wanted`
 * accepts. The result is a guess, because returned frames leave their addresses behind: use this function
 * only for stacks that cannot be unwound. Unreadable memory ends the scan. */
size_t duda_backtrace_scan_stack(const void *from, const void *to,
                                 bool (*is_wanted)(const void *address, const void *ctx), const void *ctx,
                                 void **frames, size_t max);

#endif
