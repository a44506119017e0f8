/* SPDX-License-Identifier: Apache-2.0 */
/* A client's session. It completes the response to each line before it reads the next line.
 *
 * A response consists of lines whose first character is a type: a space for output, `#` for a remark; the
 * last line begins with one of enum cheetah_tag. */
#ifndef CHEETAH_SESSION_H
#define CHEETAH_SESSION_H

#include <sys/socket.h>

#include "message.h"

enum { CHEETAH_LINE_MAX = 4096 };

enum cheetah_tag {
    CHEETAH_OK = '+',
    CHEETAH_FAILED = '-',
    CHEETAH_USAGE_ERROR = '?',
    CHEETAH_RECONNECT = '!', /* the command was not executed: reconnect and try again */
};

/* The callbacks of a command with a deferred response. Each may be NULL, and may finish the response. */
struct cheetah_deferred_command {
    void (*on_timer)(struct cheetah_session *s);       /* the timer of cheetah_session_set_timer() fired */
    void (*on_output_sent)(struct cheetah_session *s); /* the client has read most of the output */
    void (*on_message)(struct cheetah_session *s, const struct cheetah_message *note, mk_str text);
    void (*on_stop)(struct cheetah_session *s); /* the worker exits */
};

/* Takes ownership of the descriptor. Returns false if out of memory; the caller then keeps ownership. */
bool cheetah_session_open(struct shell *shell, int fd, int slot, const struct ucred *who);
/* Closes all sessions because the worker exits. */
void cheetah_session_close_all(struct shell *shell);
/* Handles a response from another worker. */
void cheetah_session_on_message(struct shell *shell, const struct cheetah_message *note, mk_str text);

/* ---- For commands ---- */

struct shell *cheetah_session_shell(const struct cheetah_session *s);
/* Writes to the error log, with the process and user of the client. */
void cheetah_session_log(const struct cheetah_session *s, const char *what);
/* Names the process and the user of the client. */
void cheetah_session_describe_client(const struct cheetah_session *s, char *buf, size_t size);
/* Writes the command, its arguments and its result to the error log. */
void cheetah_session_log_command(const struct cheetah_session *s, const char *name, mk_str args,
                                 mk_str result);
/* Writes lines of output, escaped. */
void cheetah_session_write_output(struct cheetah_session *s, mk_str lines);
/* Writes a remark, escaped. */
void cheetah_session_write_note(struct cheetah_session *s, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* Writes the last line of the response. */
void cheetah_session_finish_response(struct cheetah_session *s, enum cheetah_tag tag, const char *fmt, ...)
    MK_API_PRINTF(3, 4);
/* Ends the session after the response. */
void cheetah_session_close_later(struct cheetah_session *s);

/* Defers the response. Returns a zeroed state of `size` bytes that lives until the response ends, or NULL if
 * out of memory, which is reported. */
void *cheetah_session_defer_response(struct cheetah_session *s, const struct cheetah_deferred_command *job,
                                     size_t size);
/* Returns the state that cheetah_session_defer_response() has returned. */
void *cheetah_session_state(const struct cheetah_session *s);
/* Returns the session whose deferred response has the token; NULL: it has ended. */
struct cheetah_session *cheetah_session_find(const struct shell *shell, uint64_t token);
/* Call it after cheetah_session_finish_response() of a deferred response, unless the callback of a
 * cheetah_deferred_command made that call. May free the session. */
void cheetah_session_advance(struct cheetah_session *s);
/* Returns an unpredictable number that identifies the queries of this response. */
uint64_t cheetah_session_token(const struct cheetah_session *s);
/* Keeps the worker running, although it drains, until the response ends. */
void cheetah_session_hold_worker(struct cheetah_session *s);
void cheetah_session_set_timer(struct cheetah_session *s, uint32_t ms);

#endif
