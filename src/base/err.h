/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes: 0 is success, anything else a negated errno value. */
#ifndef MK_BASE_ERR_H
#define MK_BASE_ERR_H

#include <errno.h>
#include <string.h>

#include "base/compiler.h"

typedef int mk_err;

/* Returns the system's message for an error; never NULL. */
static inline const char *mk_err_text(mk_err e)
{
    return strerror(-e);
}

/* Returns the error of the system call that just failed with -1. */
static inline mk_err mk_err_last(void)
{
    return -errno;
}

#endif
