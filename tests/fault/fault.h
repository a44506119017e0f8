/* SPDX-License-Identifier: Apache-2.0 */
/* What a test and a library that was loaded before the program say to each other: a file, named by
 * MONKEY_FAULT, that both have in memory. The test writes it while the program runs. See tests/faults.py,
 * which knows the same layout. */
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

static _Atomic int64_t *fault; /* FAULT_WORDS of them; NULL: no faults are wanted */
static bool in_worker;         /* master and workers are one program: a worker is what was forked */

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
