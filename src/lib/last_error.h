/* SPDX-License-Identifier: Apache-2.0 */
/* Error text of the last failed call. */
#ifndef MK_LIB_LAST_ERROR_H
#define MK_LIB_LAST_ERROR_H

#include "lib/server_type.h"

/* `int before MK_KEEP_ERRNO = errno;` at the beginning of a function preserves errno. */
#define MK_KEEP_ERRNO __attribute__((cleanup(mk_last_error_restore_errno)))
void mk_last_error_restore_errno(const int *before);

/* The functions that set an error return `e`, for use in `return`. */
mk_err mk_last_error_set(struct mk_server *s, mk_err e, const char *fmt, ...) MK_PRINTF(3, 4);
/* Like mk_last_error_set(), but with only the text of the error code. */
mk_err mk_last_error_set_code(struct mk_server *s, mk_err e);
/* Adds a NUL to the text that was appended to s->error_text. */
mk_err mk_last_error_terminate(struct mk_server *s, mk_err e);

/* Sets a static message, which only the calling thread sees, until this thread's next error. Returns
 * -EBUSY. */
mk_err mk_last_error_set_misuse(const struct mk_server *s, const char *text);
void mk_last_error_clear_misuse(void);
/* Like mk_last_error_set(), but for calls while the server is running: only the calling thread sees the
 * message. */
mk_err mk_last_error_set_running(const struct mk_server *s, mk_err e, const char *fmt, ...) MK_PRINTF(3, 4);

/* Checks that setup is still possible. Returns 0, -EBUSY, or -EINVAL if `s` is not a server. Clears the last
 * error. */
mk_err mk_last_error_require_setup(struct mk_server *s) MK_MUST_USE;
/* Checks that the server is being set up or running, and stores in *is_running whether it is running. Returns
 * -EBUSY while the server is starting, and -ESHUTDOWN if it is stopping or has stopped. */
mk_err mk_last_error_check_running(struct mk_server *s, bool *is_running) MK_MUST_USE;
/* Checks that the server is running. Returns -EBUSY if it has not been started. */
mk_err mk_last_error_require_running(struct mk_server *s) MK_MUST_USE;

#endif
