/* SPDX-License-Identifier: Apache-2.0 */
/* Asks all workers at once for facts about themselves. */
#ifndef CHEETAH_GATHER_H
#define CHEETAH_GATHER_H

#include "session.h"

struct cheetah_gathering {
    /* Ends the answer; called when all workers have answered, or the time is over. */
    void (*finish)(struct cheetah_session *s, const struct cheetah_gathering *g);
    enum cheetah_question question;
    bool json;
    bool wants_level; /* ignores workers without that level */
    enum mk_log_level level;
    unsigned tries, n;
    struct cheetah_facts facts[]; /* of each worker; process 0: no answer yet */
};

/* NULL: out of memory (answered). The command may change the result before it returns. */
struct cheetah_gathering *cheetah_gather(struct cheetah_session *s, enum cheetah_question question, bool json,
                                         void (*finish)(struct cheetah_session *s,
                                                        const struct cheetah_gathering *g));

/* The number of workers without an answer; adds a remark for each. */
unsigned cheetah_gather_missing(struct cheetah_session *s, const struct cheetah_gathering *g);
/* NULL: that process is unknown. */
const struct cheetah_facts *cheetah_gather_find(const struct cheetah_gathering *g, int64_t process);

#endif
