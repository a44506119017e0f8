/* SPDX-License-Identifier: Apache-2.0 */
#include "hook_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

const char *acme_hook_file_problem(const char *path, uid_t user)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "it is not a file";
    if (!(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return "it is not executable";
    if (st.st_mode & S_IWOTH)
        return "every user can change it";
    if (st.st_uid != 0 && st.st_uid != user)
        return "its owner is neither root nor the workers' user";
    return NULL;
}
