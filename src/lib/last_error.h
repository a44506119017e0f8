/* SPDX-License-Identifier: Apache-2.0 */
/* Why a call of a program failed. */
#ifndef MK_LIB_LAST_ERROR_H
#define MK_LIB_LAST_ERROR_H

#include "lib/server_type.h"

/* `int before MK_KEEP_ERRNO = errno;` at its beginning: a function of the library leaves errno as it was. */
#define MK_KEEP_ERRNO __attribute__((cleanup(mk_last_error_restore_errno)))
void mk_last_error_restore_errno(const int *before);

/* Both answer `e`, for `return`. */
mk_err mk_last_error_set(struct mk_server *s, mk_err e, const char *fmt, ...) MK_PRINTF(3, 4);
/* The text of the error alone. */
mk_err mk_last_error_set_code(struct mk_server *s, mk_err e);
/* What was added to s->why becomes text. */
mk_err mk_last_error_terminate(struct mk_server *s, mk_err e);

/* -EBUSY, and why, in a text that lives on: for the calling thread alone, until it fails otherwise. */
mk_err mk_last_error_set_misuse(const struct mk_server *s, const char *text);
void mk_last_error_clear_misuse(void);

/* It may still be set up: 0, -EBUSY, or -EINVAL: it is no server. Forgets what failed before. */
mk_err mk_last_error_require_setup(struct mk_server *s) MK_MUST_USE;

#endif
