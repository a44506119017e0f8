/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that led to a place in the code, for reports of crashes. Safe in signal handlers, as far as backtrace(3) and
 * dladdr(3) are. It knows neither services nor servers. */
#ifndef DUDA_TRACE_BACKTRACE_H
#define DUDA_TRACE_BACKTRACE_H

#include <stdbool.h>
#include <stddef.h>

/* What a worker says on standard error to the developer in front of it, where `monkey run` puts the lines of the sources in: a
 * line DUDA_BACKTRACE_STALL with what has happened, a line DUDA_BACKTRACE_FRAME for each frame, from the innermost on (the file, the
 * offset in it, and the function if it is known), and a line DUDA_BACKTRACE_END. */
#define DUDA_BACKTRACE_STALL "duda-dev: held "
#define DUDA_BACKTRACE_FRAME "duda-dev: frame "
#define DUDA_BACKTRACE_END   "duda-dev: end"

/* backtrace(3) loads libgcc_s on its first call, which the sandbox of a worker refuses: call this ahead of the sandbox. */
void duda_backtrace_preload(void);

/* The interrupted instruction and the stack pointer, from the context (ucontext_t) of a signal. NULL: unknown on this processor. */
const void *duda_backtrace_instruction_ptr(const void *context);
const void *duda_backtrace_stack_ptr(const void *context);

/* Fills `frames`: the interrupted instruction first, then return addresses, from the innermost call on. Where unwind tables are
 * missing, or the program called a wrong address, it follows frame pointers. */
size_t duda_backtrace_from_signal(const void *context, void **frames, size_t max);
/* The same for the caller of this function: return addresses alone. */
size_t duda_backtrace_here(void **frames, size_t max);

/* Searches the words in [from, to) for return addresses that `is_wanted` accepts: each follows a call instruction. A guess,
 * because frames that have returned leave theirs behind; for stacks that cannot be unwound. Memory that is not readable ends
 * the search. */
size_t duda_backtrace_scan_stack(const void *from, const void *to,
                                 bool (*is_wanted)(const void *address, const void *ctx), const void *ctx,
                                 void **frames, size_t max);

#endif
