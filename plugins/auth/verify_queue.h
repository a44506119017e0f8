/* SPDX-License-Identifier: Apache-2.0 */
/* Checks passwords against expensive hashes outside the loop, a few at a time. Requests with the same
 * password share a check. */
#ifndef AUTH_VERIFY_QUEUE_H
#define AUTH_VERIFY_QUEUE_H

#include "attempts.h"
#include "cache.h"
#include "locations.h"

#include <monkey/worker.h>

enum auth_verify_result { AUTH_RESULT_UNKNOWN, AUTH_RESULT_VALID, AUTH_RESULT_INVALID, AUTH_RESULT_BUSY };

struct auth_verify_job;

/* Worker state of this plugin. */
struct auth_verify_queue {
    struct mk_worker *worker;
    struct auth_shared *shared;
    struct auth_cache *cache; /* NULL: not used yet, or out of memory */
    uint8_t key[AUTH_KEY_LEN];
    struct auth_verify_job *first, *last;
    unsigned n_running, n_waiting;
};

struct auth_verify_queue *auth_verify_queue_new(struct mk_worker *worker,
                                                struct auth_shared *shared) MK_API_MUST_USE;
void auth_verify_queue_free(struct auth_verify_queue *d);

struct auth_verify_query {
    const struct auth_location *place;
    mk_str user, password;         /* the password is NUL-terminated */
    const struct auth_user *known; /* the user whose hash is compared */
    bool exists;                   /* false: `known` is a decoy for an unknown user, and never matches */
    uint8_t mac[AUTH_MAC_LEN];
    struct auth_attempt_key counted;
};

/* A request that waits for a password check. */
struct auth_waiter {
    struct mk_request *request;
    const struct auth_location *place;
    struct auth_verify_job *job; /* NULL: the check has finished */
    struct auth_waiter *next;
    enum auth_verify_result result;
};

/* Sets the cache key of a check. */
void auth_verify_queue_set_mac(const struct auth_verify_queue *d, struct auth_verify_query *q);
/* Returns whether this password was verified recently. */
bool auth_verify_queue_is_cached(const struct auth_verify_queue *d, const struct auth_verify_query *q);
/* Finds a running check of the same input from the same address, so that the request can wait for its result.
 * Returns NULL if there is none. */
struct auth_verify_job *auth_verify_queue_find_job(const struct auth_verify_queue *d,
                                                   const struct auth_verify_query *q);
void auth_waiter_join_job(struct auth_waiter *wait, struct auth_verify_job *job,
                          const struct auth_verify_query *q);
/* Starts a check. The caller has counted the attempt; it is refunded if the password is right or the check
 * fails. Resumes the request when wait->answer is set. Returns false if too many checks are running. */
bool auth_verify_queue_submit(struct auth_verify_queue *d, const struct auth_verify_query *q,
                              struct auth_waiter *wait);
/* Call this when the request was aborted. */
void auth_waiter_leave(struct auth_waiter *wait);

#endif
