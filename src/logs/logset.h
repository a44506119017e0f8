/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of a configuration, each opened once. */
#ifndef MK_LOGS_LOGSET_H
#define MK_LOGS_LOGSET_H

#include "conf/report.h"
#include "logs/logfile.h"

enum { MK_LOGFILES_MAX = 64 };

struct mk_logset {
    struct mk_logfile at[MK_LOGFILES_MAX];
    size_t n;
    const struct mk_identity *workers; /* see mk_logfile_open() */
};

/* Opens the log, or finds it if it is already open. `where` is an absolute path or a special word such as
 * `syslog`. The text must be NUL-terminated and outlive the set. The first call with a size determines the
 * rotation. NULL: it failed; *error is the reason, -E2BIG for too many logs. */
struct mk_logfile *mk_logset_open(struct mk_logset *set, mk_str where, uint64_t max_size, unsigned keep,
                                  mk_err *error);
/* Like mk_logset_open(), but reports errors, with the position `at`. */
struct mk_logfile *mk_logset_open_or_report(struct mk_logset *set, mk_str where, uint64_t max_size,
                                            unsigned keep, const struct mk_conf_source_pos *at,
                                            struct mk_conf_report *report);
void mk_logset_close(struct mk_logset *set);

#endif
