/* SPDX-License-Identifier: Apache-2.0 */
/* Optional parts of the server in loadable objects, monkey-NAME.so, so that only a server that needs them
 * loads their libraries. */
#ifndef MK_OS_MODULE_H
#define MK_OS_MODULE_H

#include "base/compiler.h"

enum { MK_MODULE_ERROR_MAX = 512 };

struct mk_module {
    const char *name;   /* name without monkey- and .so */
    const char *symbol; /* name of the function table, which begins with the ABI version as an unsigned */
    const char *needs;  /* the library that the object requires, for messages */
    unsigned abi;
    const void *built_in; /* the table, if it is linked into the program; otherwise NULL */
};

/* Loads the object and returns its table; NULL: failed, with the reason in `error`. The object stays loaded
 * until the process exits. */
const void *mk_module_load(const struct mk_module *m, char error[MK_MODULE_ERROR_MAX]) MK_MUST_USE;

#endif
