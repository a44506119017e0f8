/* SPDX-License-Identifier: Apache-2.0 */
/* The control block shared by a test and a preloaded library: a file, named by MONKEY_FAULT, that both map.
 * The test writes it while the program runs. tests/fault_injection.py uses the same layout. */
#ifndef MK_TESTS_FAULT_H
#define MK_TESTS_FAULT_H

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FAULT_WORDS = 16 };

static _Atomic int64_t *fault; /* FAULT_WORDS words; NULL: no faults */
static bool in_worker;         /* master and workers are the same program: every forked process is a worker */

static void enter_worker(void)
{
    in_worker = true;
}

__attribute__((constructor)) static void fault_start(void)
{
    const char *path = getenv("MONKEY_FAULT");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *p = mmap(NULL, FAULT_WORDS * sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    pthread_atfork(NULL, NULL, enter_worker);
    if (p != MAP_FAILED)
        fault = p;
}

#endif
