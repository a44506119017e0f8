/* SPDX-License-Identifier: Apache-2.0 */
/* A robust mutex in memory that all workers share: it reports the death of its owner. */
#ifndef DUDA_STORE_SHM_MUTEX_H
#define DUDA_STORE_SHM_MUTEX_H

#include <pthread.h>

/* Returns 0 or a negated errno value. */
int store_shm_mutex_init(pthread_mutex_t *lock);
/* Returns 0; -EOWNERDEAD if it has locked the mutex, but the protected data may be inconsistent; or -EBUSY if
 * another process has held the mutex for too long. */
int store_shm_mutex_lock(pthread_mutex_t *lock);

#endif
