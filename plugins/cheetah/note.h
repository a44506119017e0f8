/* SPDX-License-Identifier: Apache-2.0 */
/* What workers ask each other, and answer. */
#ifndef SHELL_NOTE_H
#define SHELL_NOTE_H

#include "shell.h"

enum shell_question {
    SHELL_ASK_FACTS,
    SHELL_ASK_CLEAR /* your cache, and the facts */,
    SHELL_ASK_CONNECTIONS
};

/* What one worker knows of itself. */
struct shell_facts {
    int64_t process; /* 0: nothing is known */
    uint64_t memory; /* 0: nobody can tell */
    struct mk_cache_info cache;
    enum mk_log_level level;
};

enum { SHELL_CURSOR_END = -1 };

/* Both ways between processes that were born of the same one, so it is sent as it is; text may follow. */
struct shell_note {
    uint64_t token; /* of the question; its answers carry it, too */
    uint32_t question, from;
    bool is_answer, json, has_rows; /* of connections: how to write them, and behind others? */
    int64_t cursor, next; /* of connections: which is the first, and (answers) the one after these */
    struct shell_facts facts;
};

void shell_facts_of(const struct shell *s, struct shell_facts *out);

/* To a worker or MK_TO_ALL. False: it cannot be sent. */
bool shell_note_send(struct shell *s, int to, const struct shell_note *note, mk_str text);
/* The plugin's on_message. */
void shell_note_arrives(struct mk_worker *worker, mk_str message, void *data);

#endif
