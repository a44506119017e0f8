/* SPDX-License-Identifier: Apache-2.0 */
/* The work of the device, in a thread that knows nothing of HTTP. */
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static pthread_t thread;
static atomic_bool is_stopping;

void sensor_measure(void)
{
    static unsigned n;
    log_line("temperature %u.%u C", 20 + n / 10 % 5, n % 10);
    n++;
}

static void *run(void *unused)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    for (unsigned i = 0; !atomic_load(&is_stopping); i++) {
        if (i % 10 == 0)
            sensor_measure();
        nanosleep(&pause, NULL);
    }
    return unused;
}

int sensor_start(void)
{
    return pthread_create(&thread, NULL, run, NULL);
}

void sensor_stop(void)
{
    atomic_store(&is_stopping, true);
    pthread_join(thread, NULL);
}
