/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/export_symbols.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static void export_own_symbols(void)
{
    Dl_info own;
    /* Kept open: exported symbols cannot be hidden again. A program that is linked with the static library is
     * not found by that name; it exports its symbols itself, or need not. */
    if (dladdr((void *)(uintptr_t)mk_export_symbols, &own) && own.dli_fname)
        (void)!dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

void mk_export_symbols(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, export_own_symbols);
}
