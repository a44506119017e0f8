/* SPDX-License-Identifier: Apache-2.0 */
/* A robust mutex in memory that all workers share: it reports the death of its owner. */
#ifndef DUDA_STORE_SHM_MUTEX_H
#define DUDA_STORE_SHM_MUTEX_H

#include <pthread.h>

/* Returns 0 or a negated errno value. */
int store_shm_mutex_init(pthread_mutex_t *lock);
/* Returns one of:
 * 0: the mutex is locked.
 * -EOWNERDEAD: the mutex is locked, but its previous owner died while holding it, so the protected data may
 * be inconsistent.
 * -EBUSY: the mutex is not locked, usually because another process has held it for too long. */
int store_shm_mutex_lock(pthread_mutex_t *lock);

#endif
