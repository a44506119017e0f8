/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the server in an object of their own, monkey-NAME.so, so that only a server that needs them
 * carries their libraries. */
#ifndef MK_OS_MODULE_H
#define MK_OS_MODULE_H

#include "base/compiler.h"

enum { MK_MODULE_WHY = 512 };

struct mk_module {
    const char *name;   /* of the object, without monkey- and .so */
    const char *symbol; /* its table of functions, which begins with the ABI as an unsigned */
    const char *needs;  /* the library that it is built with */
    unsigned abi;
    const void *built_in; /* the table, if it is linked in; else NULL */
};

/* The table; NULL: `why` says the reason. Once loaded, an object stays. */
const void *mk_module_load(const struct mk_module *m, char why[MK_MODULE_WHY]) MK_MUST_USE;

#endif
