/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>

struct library lib;

const char *library_bind(void *handle)
{
#define FIND(name)                                                                                           \
    *(void **)&lib.name = dlsym(handle, #name);                                                              \
    if (!lib.name)                                                                                           \
        return #name;
    LIBRARY_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}
