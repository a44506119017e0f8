/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of Monkey lie in one folder: what this one loads is beside it, whatever program or library has loaded
 * it. Takes the place of os/place_own.c. */
#include <dlfcn.h>
#include <stdlib.h>

#include "os/place.h"

const char mk_place_built[] = "";
const char mk_place_installed[] = ".";

bool mk_place_own(char path[PATH_MAX])
{
    Dl_info own;
    return dladdr(mk_place_installed, &own) && own.dli_fname && realpath(own.dli_fname, path);
}
