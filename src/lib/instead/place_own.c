/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of this library, or of the program that it is a part of. Takes the place of os/place_own.c. */
#include <dlfcn.h>
#include <stdlib.h>

#include "os/place.h"

/* Installed as LIBDIR/libmonkey.so.1 and LIBDIR/monkey. */
const char mk_place_built[] = "plugins";
const char mk_place_installed[] = "monkey";

bool mk_place_own(char path[PATH_MAX])
{
    Dl_info own;
    return dladdr((void *)(uintptr_t)mk_place_own, &own) && own.dli_fname && realpath(own.dli_fname, path);
}
