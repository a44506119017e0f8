/* SPDX-License-Identifier: Apache-2.0 */
#include "wr/procfile.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "os/file.h"

mk_err wr_procfile_read(struct mk_buf *out, const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(path, sizeof path, fmt, args);
    va_end(args);
    mk_buf_clear(out);
    if (len < 0 || (size_t)len >= sizeof path)
        return -ENAMETOOLONG;
    mk_err e = mk_file_read_all(path, out);
    if (e)
        mk_buf_clear(out);
    return e;
}

DIR *wr_procfile_folder(const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(path, sizeof path, fmt, args);
    va_end(args);
    return len < 0 || (size_t)len >= sizeof path ? NULL : opendir(path);
}

bool wr_procfile_next_number(DIR *folder, pid_t *number)
{
    for (struct dirent *e; (e = readdir(folder));) {
        uint64_t n;
        if (!mk_num_parse(mk_str_from_c(e->d_name), &n) || n > INT_MAX)
            continue;
        *number = (pid_t)n;
        return true;
    }
    return false;
}

bool wr_procfile_read_stat(pid_t pid, struct wr_stat *out)
{
    char room[1024];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    return wr_procfile_read(&text, "/proc/%d/stat", (int)pid) == 0 && wr_stat_parse(mk_buf_str(&text), out);
}
