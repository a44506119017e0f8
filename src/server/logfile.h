/* SPDX-License-Identifier: Apache-2.0 */
/* Where log lines go: a file, a standard stream, or syslog. Lines are gathered and written in blocks.
 *
 * The master opens all of them, as the user it was started as; workers only write. After a rotation the
 * master opens anew and sends the new descriptors, which take the place of the old ones under the same
 * numbers. */
#ifndef MK_SERVER_LOGFILE_H
#define MK_SERVER_LOGFILE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"

enum mk_logfile_kind { MK_LOGFILE_OFF, MK_LOGFILE_STREAM, MK_LOGFILE_FILE, MK_LOGFILE_SYSLOG };

struct mk_logfile {
    mk_str where; /* as configured; ends with a NUL */
    enum mk_logfile_kind kind;
    int fd;
    bool at_once;        /* somebody watches: a terminal */
    struct mk_buf lines; /* not written yet */
    uint64_t lost;       /* lines that could not be written since the last one that could */
    uint64_t max_size;   /* a file that has grown to it becomes FILE.1; 0: it may grow */
    unsigned keep;       /* how many of those there are */
    uint64_t asked_ms;   /* when the master was told that it has; 0: it was not, or has answered */
};

/* `where` ends with a NUL and outlives the file: a path, "stdout", "stderr", "syslog" or "off". */
mk_err mk_logfile_open(struct mk_logfile *f, mk_str where) MK_MUST_USE;
void mk_logfile_close(struct mk_logfile *f);
/* For a daemon: a standard stream, unless it leads to a file, is let go. */
void mk_logfile_silence(struct mk_logfile *f, int null);
/* "stdout" and the like: not a path. */
bool mk_logfile_is_word(mk_str where);
bool mk_logfile_is_full(const struct mk_logfile *f);
/* FILE becomes FILE.1, FILE.1 becomes FILE.2, ... -ENOENT: it is not there any more under its name. */
mk_err mk_logfile_shift(const struct mk_logfile *f) MK_MUST_USE;
/* The same file opened once more, for a rotation: a new descriptor, or an error. */
int mk_logfile_open_again(const struct mk_logfile *f);
/* A new file of that name; -EEXIST: something has it, be it a link. */
int mk_logfile_make(const struct mk_logfile *f);

enum { MK_LOGFILE_BLOCK = 16 * 1024 };

/* To add a line: take the room for at most `max` bytes, append to it (with the line's end), say so. NULL:
 * there is no memory, the line counts as lost. */
struct mk_buf *mk_logfile_room(struct mk_logfile *f, size_t max);
/* True when lines are waiting that mk_logfile_flush is to write before long. */
bool mk_logfile_added(struct mk_logfile *f);
/* Writes what was gathered and then, at once, that line with its end; syslog is told the level. False: there
 * is no memory. */
bool mk_logfile_say(struct mk_logfile *f, enum mk_log_level level, mk_str line);
/* Writes what was gathered. What cannot be written is dropped and counted: a full disk must not stop the
 * server. */
void mk_logfile_flush(struct mk_logfile *f);

#endif
