/* SPDX-License-Identifier: Apache-2.0 */
#include "os/executable.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char self[] = "/proc/self/exe";

bool mk_executable_is_replaced(void)
{
    static const char deleted[] = " (deleted)";
    char path[PATH_MAX];
    struct stat ours, now;
    ssize_t len = readlink(self, path, sizeof path - 1);
    if (len <= 0 || stat(self, &ours) < 0)
        return false;
    path[len] = '\0';
    size_t end = sizeof deleted - 1;
    if ((size_t)len > end && strcmp(path + (size_t)len - end, deleted) == 0)
        path[(size_t)len - end] = '\0';
    return stat(path, &now) == 0 && (now.st_dev != ours.st_dev || now.st_ino != ours.st_ino);
}
