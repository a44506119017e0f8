/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and responses between workers. */
#ifndef CHEETAH_MESSAGE_H
#define CHEETAH_MESSAGE_H

#include "shell_type.h"

enum cheetah_message_type {
    CHEETAH_MESSAGE_FACTS,
    CHEETAH_MESSAGE_CLEAR_CACHE /* clear the cache, then send the statistics */,
    CHEETAH_MESSAGE_CONNECTIONS
};

/* Statistics of one worker. */
struct cheetah_worker_facts {
    int64_t process; /* 0: unknown */
    uint64_t memory; /* 0: unknown */
    struct mk_cache_info cache;
    enum mk_log_level level;
};

enum { CHEETAH_CURSOR_END = -1 };

/* Both processes run the same program, so the struct is sent as is. Text may follow. */
struct cheetah_message {
    uint64_t token; /* set by the query and repeated in its responses */
    uint32_t question, from;
    bool is_response, json, has_rows; /* connections: the format, and whether earlier rows were sent */
    int64_t cursor, next;             /* connections: position of the page; in responses, of the next page */
    struct cheetah_worker_facts facts;
};

void cheetah_worker_facts_collect(const struct shell *s, struct cheetah_worker_facts *out);

/* Sends to a worker or MK_TO_ALL. Returns false on failure. */
bool cheetah_message_send(struct shell *s, unsigned to, const struct cheetah_message *note, mk_str text);

/* Returns whether a newer configuration is active: then only its workers respond. */
bool cheetah_is_worker_superseded(const struct mk_worker *w);

#endif
