/* SPDX-License-Identifier: Apache-2.0 */
/* backtrace() for a C library without <execinfo.h>, such as musl: the compiler's library unwinds the stack. */
#ifndef WITHOUT_EXECINFO_H
#define WITHOUT_EXECINFO_H

#include <stdint.h>
#include <unwind.h>

struct without_execinfo_walk {
    void **at;
    int n, max;
};

static inline _Unwind_Reason_Code without_execinfo_step(struct _Unwind_Context *frame, void *ctx)
{
    struct without_execinfo_walk *w = (struct without_execinfo_walk *)ctx;
    if (w->n == w->max)
        return _URC_END_OF_STACK;
    w->at[w->n++] = (void *)(uintptr_t)_Unwind_GetIP(frame);
    return _URC_NO_REASON;
}

/* With its own frame first, as glibc's. */
__attribute__((noinline)) static int backtrace(void **at, int max)
{
    struct without_execinfo_walk w = {at, 0, max};
    (void)_Unwind_Backtrace(without_execinfo_step, &w);
    return w.n;
}

#endif
