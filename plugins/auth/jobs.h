/* SPDX-License-Identifier: Apache-2.0 */
/* Checks passwords against expensive hashes outside the loop: a few at a time, identical questions only
 * once. */
#ifndef AUTH_JOBS_H
#define AUTH_JOBS_H

#include "attempts.h"
#include "cache.h"
#include "places.h"

#include <monkey/worker.h>

enum auth_answer { AUTH_UNKNOWN, AUTH_RIGHT, AUTH_WRONG, AUTH_BUSY };

struct auth_job;

/* What a worker keeps for this plugin. */
struct auth_desk {
    struct mk_worker *worker;
    struct auth_shared *shared;
    struct auth_cache *cache; /* made when it is first needed; NULL is fine */
    uint8_t key[AUTH_KEY_LEN];
    struct auth_job *first, *last;
    unsigned n_running, n_waiting;
};

struct auth_desk *auth_desk_open(struct mk_worker *worker, struct auth_shared *shared) MK_API_MUST_USE;
void auth_desk_close(struct auth_desk *d);

struct auth_question {
    const struct auth_place *place;
    mk_str user, password;         /* the password is NUL-terminated */
    const struct auth_user *known; /* the user whose hash to compare with */
    bool exists;                   /* false: `known` is a decoy for an unknown user, and never matches */
    uint8_t mac[AUTH_MAC_LEN];
    struct auth_counted counted;
};

/* A request that waits for an answer. */
struct auth_wait {
    struct mk_request *request;
    const struct auth_place *place;
    struct auth_job *job; /* NULL: the result is there */
    struct auth_wait *next;
    enum auth_answer answer;
};

/* The name of a question in the cache. */
void auth_desk_mac(const struct auth_desk *d, struct auth_question *q);
/* Was this password verified recently? */
bool auth_desk_remembers(const struct auth_desk *d, const struct auth_question *q);
/* Finds a running check of the same question from the same address; the request can then wait for it too. */
struct auth_job *auth_desk_find(const struct auth_desk *d, const struct auth_question *q);
void auth_wait_join(struct auth_wait *wait, struct auth_job *job, const struct auth_question *q);
/* Asks; the attempt was counted, and is given back if the answer is right or there is none. The request is
 * resumed when wait->answer is there. False: there are too many already. */
bool auth_desk_ask(struct auth_desk *d, const struct auth_question *q, struct auth_wait *wait);
/* The request went away. */
void auth_wait_leave(struct auth_wait *wait);

#endif
