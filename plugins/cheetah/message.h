/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers between workers. */
#ifndef CHEETAH_MESSAGE_H
#define CHEETAH_MESSAGE_H

#include "shell_type.h"

enum cheetah_message_type {
    CHEETAH_MESSAGE_FACTS,
    CHEETAH_MESSAGE_CLEAR_CACHE /* clear the cache, then answer the facts */,
    CHEETAH_MESSAGE_CONNECTIONS
};

/* Facts of one worker. */
struct cheetah_worker_facts {
    int64_t process; /* 0: unknown */
    uint64_t memory; /* 0: unknown */
    struct mk_cache_info cache;
    enum mk_log_level level;
};

enum { CHEETAH_CURSOR_END = -1 };

/* Between processes of the same program, so the bytes are sent unchanged; text may follow. */
struct cheetah_message {
    uint64_t token; /* of the question; answers repeat it */
    uint32_t question, from;
    bool is_answer, json, has_rows; /* of connections: the format, and whether rows precede */
    int64_t cursor, next;           /* of connections: the first one; in answers, the one after the page */
    struct cheetah_worker_facts facts;
};

void cheetah_worker_facts_collect(const struct shell *s, struct cheetah_worker_facts *out);

/* To a worker or MK_TO_ALL. False: sending failed. */
bool cheetah_message_send(struct shell *s, int to, const struct cheetah_message *note, mk_str text);

/* True if a newer configuration serves: only its workers answer. */
bool cheetah_is_superseded(const struct mk_worker *w);

#endif
