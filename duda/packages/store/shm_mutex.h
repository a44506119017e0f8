/* SPDX-License-Identifier: Apache-2.0 */
/* A robust mutex in memory shared by all workers: reports the death of its owner. */
#ifndef DUDA_STORE_SHM_MUTEX_H
#define DUDA_STORE_SHM_MUTEX_H

#include <pthread.h>

/* 0 or a negated errno value. */
int store_shm_mutex_init(pthread_mutex_t *lock);
/* 0; -EOWNERDEAD: locked, but the protected data may be inconsistent; -EBUSY: another process has held
 * it for too long. */
int store_shm_mutex_lock(pthread_mutex_t *lock);

#endif
