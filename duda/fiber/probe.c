/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/probe.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fiber/fiber.h"

/* Compilers may count on guards of 64 KB, as gcc does for aarch64. */
enum { STACK = 512 << 10, FRAME = 256 << 10, STEP_MAX = 64 << 10, PAGE_MIN = 4096 };

static void call(void *arg)
{
    const struct duda_probe *probe = arg;
    probe->touch(FRAME);
}

/* The longest run of untouched pages between the far end of the frame and the top of the stack. The stack is a new one. */
static size_t find_gap(const struct duda_stack *stack)
{
    unsigned char touched[STACK / PAGE_MIN];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = stack->size / page, gap = 0, longest = 0;
    if (n > sizeof touched || mincore(stack->low, stack->size, touched))
        return 0;
    for (size_t i = n; i-- > 0;) {
        gap = touched[i] & 1 ? 0 : gap + page;
        if (!gap)
            continue;
        bool is_frame = false;
        for (size_t k = 0; k < i && !is_frame; k++)
            is_frame = touched[k] & 1;
        longest = is_frame && gap > longest ? gap : longest;
    }
    return longest;
}

static bool leaves_out_pages(const struct duda_probe *probe)
{
    union {
        const struct duda_probe *probe;
        void *arg;
    } p = {.probe = probe};
    struct duda_stacks *stacks = duda_stacks_new(STACK);
    struct duda_fiber *f = stacks ? duda_fiber_new(stacks, call, p.arg) : NULL;
    size_t gap = 0;
    if (f) {
        (void)duda_fiber_resume(f);
        gap = find_gap(duda_fiber_stack(f));
        duda_fiber_free(f);
    }
    duda_stacks_free(stacks);
    return gap > STEP_MAX;
}

const char *duda_probe_find_fault(const struct duda_service *service)
{
    for (const struct duda_probe *p = service->probes; p != service->probes_end; p++)
        if (leaves_out_pages(p))
            return p->file;
    return NULL;
}
