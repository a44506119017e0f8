/* SPDX-License-Identifier: Apache-2.0 */
/* Asks all workers at once what they know of themselves. */
#ifndef SHELL_GATHER_H
#define SHELL_GATHER_H

#include "session.h"

struct shell_gathering {
    /* Ends the answer; called when all have answered, or time is over. */
    void (*finish)(struct shell_session *s, const struct shell_gathering *g);
    enum shell_question question;
    bool json;
    bool wants_level; /* nobody has answered who does not have that level yet */
    enum mk_log_level level;
    unsigned tries, n;
    struct shell_facts facts[]; /* of each worker; process 0: it has not answered */
};

/* NULL: no memory, which was answered. What it answers may be changed before the command returns. */
struct shell_gathering *shell_gather(struct shell_session *s, enum shell_question question, bool json,
                                     void (*finish)(struct shell_session *s,
                                                    const struct shell_gathering *g));

/* How many have not answered; remarks who. */
unsigned shell_gather_missing(struct shell_session *s, const struct shell_gathering *g);
/* NULL: nothing is known of that process. */
const struct shell_facts *shell_gather_find(const struct shell_gathering *g, int64_t process);

#endif
