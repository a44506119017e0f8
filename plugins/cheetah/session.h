/* SPDX-License-Identifier: Apache-2.0 */
/* One client of the shell. A session answers each line before it reads the next one.
 *
 * An answer consists of lines, with a first character for their type: a space for output, `#` for a remark;
 * the last line begins with one of enum cheetah_tag. */
#ifndef CHEETAH_SESSION_H
#define CHEETAH_SESSION_H

#include <sys/socket.h>

#include "message.h"

enum { CHEETAH_LINE_MAX = 4096 };

enum cheetah_tag {
    CHEETAH_OK = '+',
    CHEETAH_FAILED = '-',
    CHEETAH_USAGE_ERROR = '?',
    CHEETAH_RECONNECT = '!', /* nothing was done: reconnect, and try again */
};

/* A command that is answered later. Each member may be NULL, and may end the answer. */
struct cheetah_deferred_command {
    void (*on_timer)(struct cheetah_session *s);       /* of cheetah_session_defer_answer() */
    void (*on_output_sent)(struct cheetah_session *s); /* the client has read most of the output */
    void (*on_message)(struct cheetah_session *s, const struct cheetah_message *note, mk_str text);
    void (*on_stop)(struct cheetah_session *s); /* the worker exits */
};

/* Takes ownership of the descriptor. False: out of memory; the caller keeps it. */
bool cheetah_session_open(struct shell *shell, int fd, int slot, const struct ucred *who);
/* The worker exits. */
void cheetah_session_close_all(struct shell *shell);
/* Handles an answer of another worker. */
void cheetah_session_on_message(struct shell *shell, const struct cheetah_message *note, mk_str text);

/* ---- For commands ---- */

struct shell *cheetah_session_shell(const struct cheetah_session *s);
/* Into the error log, with process and user. */
void cheetah_session_log(const struct cheetah_session *s, const char *what);
/* Lines of output, and remarks. Both are escaped. */
void cheetah_session_write_output(struct cheetah_session *s, mk_str lines);
void cheetah_session_write_remark(struct cheetah_session *s, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* The last line of the answer. */
void cheetah_session_finish_answer(struct cheetah_session *s, enum cheetah_tag tag, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/* Ends the session after the answer. */
void cheetah_session_close_later(struct cheetah_session *s);

/* The answer comes later. Returns a state of `size` bytes, initially zero, that lives until the answer ends;
 * NULL: out of memory (answered). The token for questions is unpredictable. */
void *cheetah_session_defer_answer(struct cheetah_session *s, const struct cheetah_deferred_command *job,
                                   size_t size);
void *cheetah_session_state(const struct cheetah_session *s);
uint64_t cheetah_session_token(const struct cheetah_session *s);
void cheetah_session_set_timer(struct cheetah_session *s, uint32_t ms);

#endif
