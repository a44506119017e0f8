/* SPDX-License-Identifier: Apache-2.0 */
/* Queries all workers at once for their statistics. */
#ifndef CHEETAH_WORKER_QUERY_H
#define CHEETAH_WORKER_QUERY_H

#include "session.h"

struct cheetah_worker_query {
    /* Finishes the response. Called when all workers have responded, or on timeout. */
    void (*finish)(struct cheetah_session *s, const struct cheetah_worker_query *g);
    enum cheetah_message_type question;
    bool json;
    bool wants_level; /* a worker counts as having responded only when its log level is `level` */
    enum mk_log_level level;
    unsigned tries, n;
    struct cheetah_worker_facts facts[]; /* one for each worker; process is 0 if it has not responded */
};

/* Sends the query. Returns NULL if out of memory, which is reported. The command may still modify the result
 * until the command returns. */
struct cheetah_worker_query *
cheetah_worker_query_start(struct cheetah_session *s, enum cheetah_message_type question, bool json,
                           void (*finish)(struct cheetah_session *s, const struct cheetah_worker_query *g));

/* Returns the number of workers without a response; adds a remark for each. */
unsigned cheetah_worker_query_n_missing(struct cheetah_session *s, const struct cheetah_worker_query *g);
/* Returns NULL if the process is unknown. */
const struct cheetah_worker_facts *cheetah_worker_query_find(const struct cheetah_worker_query *g,
                                                             int64_t process);

#endif
