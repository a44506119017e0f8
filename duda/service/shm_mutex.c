/* SPDX-License-Identifier: Apache-2.0 */
#include <duda/shm_mutex.h>
#include <errno.h>
#include <time.h>

enum { PATIENCE_MS = 200 };

int duda_shm_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t a;
    int e = pthread_mutexattr_init(&a);
    if (e)
        return -e;
    e = pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    e = e ? e : pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    e = e ? e : pthread_mutex_init(mutex, &a);
    pthread_mutexattr_destroy(&a);
    return -e;
}

int duda_shm_mutex_lock(pthread_mutex_t *mutex)
{
    struct timespec end;
    int e = pthread_mutex_trylock(mutex);
    if (e == EBUSY) {
        clock_gettime(CLOCK_REALTIME,
                      &end); /* not monkey/clock.h: pthread_mutex_timedlock() needs a struct timespec */
        end.tv_nsec += PATIENCE_MS * 1000000L;
        end.tv_sec += end.tv_nsec / 1000000000L;
        end.tv_nsec %= 1000000000L;
        e = pthread_mutex_timedlock(mutex, &end);
    }
    if (e == EOWNERDEAD && pthread_mutex_consistent(mutex) == 0)
        return -EOWNERDEAD;
    if (e == EOWNERDEAD)
        pthread_mutex_unlock(mutex);
    return e ? -EBUSY : 0;
}
