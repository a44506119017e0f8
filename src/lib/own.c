/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/own.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static void show(void)
{
    Dl_info own;
    /* Kept open: what was shown cannot be hidden. A program that we are a part of is not found by that name;
     * it shows its symbols itself, or has no need to. */
    if (dladdr((void *)(uintptr_t)mk_own_show, &own) && own.dli_fname)
        (void)!dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

void mk_own_show(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, show);
}
