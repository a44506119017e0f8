/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber/stack_probe.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Compilers may rely on guards of 64 KB, as gcc does for aarch64. */
enum { STACK = 512 << 10, FRAME = 256 << 10, STEP_MAX = 64 << 10, PAGE_MIN = 4096 };

static void *probe_thread_main(void *arg)
{
    const struct duda_probe *probe = arg;
    probe->touch(FRAME);
    return NULL;
}

/* Returns the longest run of untouched pages between the far end of the frame and the top of the stack. */
static size_t find_untouched_gap(char *stack)
{
    unsigned char touched[STACK / PAGE_MIN];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = STACK / page, end = 0, gap = 0, longest = 0;
    if (n > sizeof touched || mincore(stack, STACK, touched))
        return 0;
    while (end < n && !(touched[end] & 1))
        end++;
    for (size_t i = end; i < n; i++) {
        gap = touched[i] & 1 ? 0 : gap + page;
        longest = gap > longest ? gap : longest;
    }
    return longest;
}

/* Runs the probe in a separate thread on an untouched stack. */
static bool run_probe_thread(const struct duda_probe *probe, char *stack)
{
    union {
        const struct duda_probe *probe;
        void *arg;
    } p = {.probe = probe};
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr))
        return false;
    bool runs = !pthread_attr_setstack(&attr, stack, STACK) &&
                !pthread_create(&thread, &attr, probe_thread_main, p.arg);
    if (runs)
        pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    return runs;
}

static bool skips_stack_pages(const struct duda_probe *probe)
{
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return false;
    (void)madvise(stack, STACK, MADV_NOHUGEPAGE); /* so that pages are touched individually */
    bool leaves_out = run_probe_thread(probe, stack) && find_untouched_gap(stack) > STEP_MAX;
    munmap(stack, STACK);
    return leaves_out;
}

const char *duda_stack_probe_find_unprotected(const struct duda_service *service)
{
    for (const struct duda_probe *p = service->probes; p != service->probes_end; p++)
        if (skips_stack_pages(p))
            return p->file;
    return NULL;
}
