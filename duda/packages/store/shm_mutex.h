/* SPDX-License-Identifier: Apache-2.0 */
/* A lock in memory that all workers share. It tells when its owner has died. */
#ifndef DUDA_STORE_SHM_MUTEX_H
#define DUDA_STORE_SHM_MUTEX_H

#include <pthread.h>

/* 0 or a negated errno value. */
int store_shm_mutex_init(pthread_mutex_t *lock);
/* 0; -EOWNERDEAD: it is ours, and what it protects may be half done; -EBUSY: another process holds it for too long. */
int store_shm_mutex_lock(pthread_mutex_t *lock);

#endif
