/* SPDX-License-Identifier: Apache-2.0 */
/* Log writer of one worker, or of the master, for one log: buffers lines and writes them in blocks. Threads
 * may write to the same log at once, each with its own writer. */
#ifndef MK_LOGS_LOGWRITER_H
#define MK_LOGS_LOGWRITER_H

#include "base/buf.h"
#include "base/log.h"
#include "logs/logfile.h"

struct mk_logwriter {
    const struct mk_logfile *file;
    bool is_file, is_socket;        /* neither: a pipe or a device */
    bool may_wait;                  /* the descriptor is in blocking mode: poll before each write */
    bool has_partial_line;          /* a line was written in part: `lines` begins with its rest */
    struct mk_buf lines;            /* lines not written yet; allocated on first use */
    uint64_t lost;                  /* lines dropped since the last report of lost lines */
    mk_err lost_by;                 /* why the last of these lines was dropped */
    uint64_t rotation_requested_ms; /* when the worker requested a rotation; 0: no request is pending */
};

void mk_logwriter_init(struct mk_logwriter *w, const struct mk_logfile *file);
/* Writes the pending lines, and frees the buffer. */
void mk_logwriter_fini(struct mk_logwriter *w);
/* Writes the pending lines, and switches to this log. The count of lost lines is kept. */
void mk_logwriter_switch_file(struct mk_logwriter *w, const struct mk_logfile *file);
/* Writes the pending lines, and switches to another descriptor of the same log: see
 * mk_logfile_replace_fd(). */
mk_err mk_logwriter_replace_fd(struct mk_logwriter *w, int fd) MK_MUST_USE;

enum { MK_LOGWRITER_BLOCK = 16 * 1024 };

/* Begins a line of at most `max` bytes: append the line with its newline to the returned buffer, then call
 * mk_logwriter_commit(). NULL: out of memory, and the line counts as lost. For syslog and the journal, writes
 * the priority of the level before the line, so that no text from a client is mistaken for a priority. */
struct mk_buf *mk_logwriter_reserve(struct mk_logwriter *w, enum mk_log_level level, size_t max);
/* Ends a line. True: lines are pending, and mk_logwriter_flush() must write them soon. */
bool mk_logwriter_commit(struct mk_logwriter *w);
/* Writes the pending lines and this line, which ends with a newline, without delay. False: the line was lost,
 * and counted as lost. */
bool mk_logwriter_write_now(struct mk_logwriter *w, enum mk_log_level level, mk_str line);
/* Writes the pending lines without blocking: a full disk or a stalled reader must not stop the server. A line
 * is written completely, or dropped and counted. */
void mk_logwriter_flush(struct mk_logwriter *w);
/* Returns why lines were lost, for a message. */
const char *mk_logwriter_loss_reason(const struct mk_logwriter *w);

#endif
