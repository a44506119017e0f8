/* SPDX-License-Identifier: Apache-2.0 */
/* One client of the shell: lines come in, each is answered before the next one is looked at.
 *
 * An answer is lines, whose first character says what they are: a space, output; `#`, a remark; and the last
 * one of enum shell_tag. */
#ifndef SHELL_SESSION_H
#define SHELL_SESSION_H

#include <sys/socket.h>

#include "note.h"

enum { SHELL_LINE_MAX = 4096 };

enum shell_tag {
    SHELL_DONE = '+',
    SHELL_FAILED = '-',
    SHELL_MISUSED = '?',
    SHELL_ELSEWHERE = '!', /* nothing was done, and nothing will be: connect anew, and ask there */
};

/* A command that cannot be answered at once. Each of these may be NULL; each may end the answer. */
struct shell_job {
    void (*on_time)(struct shell_session *s); /* of shell_session_wait() */
    void (*on_room)(struct shell_session *s); /* the client took most of what was said */
    void (*on_note)(struct shell_session *s, const struct shell_note *note, mk_str text);
    void (*on_stop)(struct shell_session *s); /* the worker ends */
};

/* Takes the descriptor. False: no memory; then it is still the caller's. */
bool shell_session_begin(struct shell *shell, int fd, int seat, const struct ucred *who);
/* The worker ends. */
void shell_session_end_all(struct shell *shell);
/* Somebody answers one of our questions. */
void shell_session_hear(struct shell *shell, const struct shell_note *note, mk_str text);

/* ---- For commands ---- */

struct shell *shell_session_shell(const struct shell_session *s);
/* Into the error log, with who it is. */
void shell_session_log(const struct shell_session *s, const char *what);
/* Lines of output; a remark goes beside them. Both are made safe. */
void shell_session_say(struct shell_session *s, mk_str lines);
void shell_session_remark(struct shell_session *s, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* The last line of the answer. */
void shell_session_answer(struct shell_session *s, enum shell_tag tag, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/* The client is to go once it has the answer. */
void shell_session_dismiss(struct shell_session *s);

/* The answer comes later. `state` is of `size` bytes, zero at first, and goes with the answer; NULL: there is
 * no memory, and the answer says so. The token is one that nobody can guess, for questions. */
void *shell_session_wait(struct shell_session *s, const struct shell_job *job, size_t size);
void *shell_session_state(const struct shell_session *s);
uint64_t shell_session_token(const struct shell_session *s);
void shell_session_set_time(struct shell_session *s, uint32_t ms);

#endif
