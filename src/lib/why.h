/* SPDX-License-Identifier: Apache-2.0 */
/* Why a call of a program failed. */
#ifndef MK_LIB_WHY_H
#define MK_LIB_WHY_H

#include "lib/server_type.h"

/* `int before MK_KEPT = errno;` at its beginning: a function of the library leaves errno as it was. */
#define MK_KEPT __attribute__((cleanup(mk_why_restore_errno)))
void mk_why_restore_errno(const int *before);

/* Both answer `e`, for `return`. */
mk_err mk_why(struct mk_server *s, mk_err e, const char *fmt, ...) MK_PRINTF(3, 4);
/* The text of the error alone. */
mk_err mk_why_error(struct mk_server *s, mk_err e);
/* What was added to s->why becomes text. */
mk_err mk_why_end(struct mk_server *s, mk_err e);

/* -EBUSY, and why, in a text that lives on: for the calling thread alone, until it fails otherwise. */
mk_err mk_why_misuse(const struct mk_server *s, const char *text);
void mk_why_forget(void);

/* It may still be set up: 0, -EBUSY, or -EINVAL: it is no server. Forgets what failed before. */
mk_err mk_why_setting_up(struct mk_server *s) MK_MUST_USE;

#endif
