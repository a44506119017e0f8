/* SPDX-License-Identifier: Apache-2.0 */
#include "server/errorlog.h"

#include <time.h>
#include <unistd.h>

#include "os/fd.h"

static void add_time(struct mk_buf *line)
{
    char text[32];
    struct tm t;
    time_t now = time(NULL);
    localtime_r(&now, &t);
    size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &t);
    mk_buf_add(line, mk_str_of(text, len));
}

static void write_line(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    struct mk_errorlog *e = MK_CONTAINER(log, struct mk_errorlog, log);
    char room[1280];
    struct mk_buf line = mk_buf_fixed(room, sizeof room);
    add_time(&line);
    mk_buf_addf(&line, " [%s] %d: %.*s\n", mk_log_level_names[level], (int)getpid(), MK_STR_ARG(text));
    bool has_file = e->file && e->file->fd >= 0;
    if (!has_file || !mk_logfile_say(e->file, level, mk_buf_str(&line)))
        (void)!mk_fd_write_all(STDERR_FILENO, line.p, line.len);
}

void mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level, struct mk_logfile *file)
{
    *e = (struct mk_errorlog){.log = {.level = level, .write = write_line}, .file = file};
}
