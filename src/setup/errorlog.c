/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/errorlog.h"

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

enum { LINE_MAX_SIZE = 1280 };

bool mk_errorlog_reserve(struct mk_logfile *file)
{
    return mk_buf_reserve(&file->lines, LINE_MAX_SIZE);
}

/* False: the line is lost. */
static bool say(struct mk_errorlog *e, enum mk_log_level level, mk_str text)
{
    char room[LINE_MAX_SIZE];
    struct mk_buf line = mk_buf_fixed(room, sizeof room);
    add_time(&line);
    mk_buf_addf(&line, " [%s] %d: %.*s\n", mk_log_level_names[level], (int)getpid(), MK_STR_ARG(text));
    if (e->file && e->file->fd >= 0)
        return mk_logfile_say(e->file, level, mk_buf_str(&line));
    return mk_fd_write_all(STDERR_FILENO, line.p, line.len) == 0;
}

/* Reports how many lines the log has lost, as soon as it is writable again. */
static void tell_lost(struct mk_errorlog *e)
{
    char room[96];
    struct mk_buf text = mk_buf_fixed(room, sizeof room);
    uint64_t n = e->file->lost;
    mk_buf_addf(&text, "%llu lines of this log were lost: it could not be written", (unsigned long long)n);
    e->file->lost = say(e, MK_LOG_ERROR, mk_buf_str(&text)) ? 0 : n;
}

static void write_line(struct mk_log *log, enum mk_log_level level, mk_str text)
{
    struct mk_errorlog *e = MK_CONTAINER(log, struct mk_errorlog, log);
    if (e->file && e->file->lost)
        tell_lost(e);
    (void)say(e, level, text);
}

void mk_errorlog_catch_up(struct mk_log *log)
{
    struct mk_errorlog *e = MK_CONTAINER(log, struct mk_errorlog, log);
    if (log->write == write_line && e->file && e->file->lost)
        tell_lost(e);
}

void mk_errorlog_init(struct mk_errorlog *e, enum mk_log_level level, struct mk_logfile *file)
{
    *e = (struct mk_errorlog){.log = {.level = level, .write = write_line}, .file = file};
}
