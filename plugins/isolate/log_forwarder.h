/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a group for the error log: each with the time, and with the name of the service. What a service writes to its
 * standard error is not trusted. */
#ifndef ISOLATE_LOG_FORWARDER_H
#define ISOLATE_LOG_FORWARDER_H

#include <monkey/buf.h>
#include <sys/types.h>

struct isolate_log_forwarder {
    const char *name;
    const char *log; /* as mk_config_error_log() has it */
    bool to_file, to_syslog;
    bool has_priorities; /* as mk_config_error_log_has_priorities() has it */
    pid_t group;         /* of processes, which may name themselves in their lines; 0: none */
    struct mk_buf rest;  /* of a line that has not ended yet */
};

void isolate_log_forwarder_init(struct isolate_log_forwarder *l, const char *name, const char *log,
                                bool has_priorities);
/* Takes what the group said. A line is written when its end has come, or 16 KB of it. */
void isolate_log_forwarder_append(struct isolate_log_forwarder *l, mk_str text);
/* The group says no more: what has come of its last line is written. */
void isolate_log_forwarder_flush(struct isolate_log_forwarder *l);
/* A line of our own. */
void isolate_log_forwarder_printf(struct isolate_log_forwarder *l, const char *level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
