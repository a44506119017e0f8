/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of log lines: a file, a standard stream, or syslog.
 *
 * The master opens all logs, as the user that started it. Workers only write, each through its own writers
 * (logwriter.h), and the struct of a log does not change while they run. After a rotation, the master reopens
 * the logs and sends the new descriptors, which replace the old ones under the same numbers. */
#ifndef MK_LOGS_LOGFILE_H
#define MK_LOGS_LOGFILE_H

#include "base/err.h"
#include "base/str.h"

struct mk_identity;

enum mk_logfile_kind { MK_LOGFILE_OFF, MK_LOGFILE_STREAM, MK_LOGFILE_FILE, MK_LOGFILE_SYSLOG };

struct mk_logfile {
    mk_str where; /* as configured; ends with a NUL */
    enum mk_logfile_kind kind;
    int fd;
    unsigned index;                    /* index of the log in its set */
    const struct mk_identity *workers; /* user that must not control the file; NULL: no check */
    bool at_once;                      /* the log is a terminal: write without delay */
    bool has_priorities;               /* syslog or the journal, which add timestamp and process ID */
    bool is_json;                      /* error log: lines are JSON objects */
    mk_err syslog_error;               /* why syslog could not be reached when opened; 0: connected */
    uint64_t max_size;                 /* a file that reaches this size becomes FILE.1; 0: no limit */
    unsigned keep;                     /* how many rotated files are kept */
};

/* Opens the log `where`: a path, "stdout", "stderr", "syslog" or "off". The text is NUL-terminated and must
 * live as long as `f`. If `workers` is not NULL, opens a file only if that user can neither replace the file
 * nor redirect the path; otherwise returns -ELOOP or -EPERM, like mk_safe_open(). A syslog service may start
 * later than the server: the call then succeeds and sets `syslog_error`, and each flush of a log writer tries
 * to connect. */
mk_err mk_logfile_open(struct mk_logfile *f, mk_str where, const struct mk_identity *workers) MK_MUST_USE;
/* Switches to another descriptor; the caller keeps ownership of `fd`. */
mk_err mk_logfile_replace_fd(const struct mk_logfile *f, int fd) MK_MUST_USE;
void mk_logfile_close(struct mk_logfile *f);
/* If the log is a standard stream, and the stream is not a file, redirects the log to `null`, for a
 * daemon. */
void mk_logfile_redirect_to_null(const struct mk_logfile *f, int null);
/* Is `where` "stdout" or another special word, and not a path? */
bool mk_logfile_is_special_name(mk_str where);
bool mk_logfile_is_full(const struct mk_logfile *f);
/* Renames FILE to FILE.1, FILE.1 to FILE.2, and so on, or removes FILE if `keep` is 0. -ENOENT: the open log
 * is no longer at this path. */
mk_err mk_logfile_rename_rotated(const struct mk_logfile *f) MK_MUST_USE;
/* Opens the log again after a rotation, or connects to syslog again. Returns a new descriptor, or an
 * error. */
int mk_logfile_reopen(const struct mk_logfile *f);
/* Renames FILE, and returns a descriptor of the file that replaces it, or an error. A new file gets the owner
 * and mode of the old file; an existing file keeps its own, because it may be a link to a file that is not
 * ours. */
int mk_logfile_rotate(const struct mk_logfile *f);
/* Creates a file of that name; -EEXIST: the name exists, perhaps as a link. */
int mk_logfile_create(const struct mk_logfile *f);

#endif
