/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes in memory that all workers share. For packages; services use duda/lock.h and duda/store.h. */
#ifndef DUDA_SHM_MUTEX_H
#define DUDA_SHM_MUTEX_H

#include <monkey/api.h>
#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Initializes a robust mutex, which reports the death of its owner. Returns 0 or a negative errno value. */
MK_API int duda_shm_mutex_init(pthread_mutex_t *mutex) MK_API_MUST_USE;
/** Locks the mutex, and blocks the worker for up to 200 ms. Returns 0; -EOWNERDEAD: the mutex is locked, but
 * its previous owner died while holding it, so the protected data may be inconsistent; -EBUSY: the mutex is
 * not locked, usually because another process has held it for too long. Unlock it with
 * pthread_mutex_unlock(). */
MK_API int duda_shm_mutex_lock(pthread_mutex_t *mutex) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
