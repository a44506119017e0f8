/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "os/place.h"

const char mk_place_built[] = "plugins";
const char mk_place_installed[] = MK_PLUGIN_DIR_FROM_PROGRAM;

bool mk_place_own(char path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = '\0';
    return len > 0;
}
