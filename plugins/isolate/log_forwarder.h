/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards a group's output to the error log, with the time and the service's name. The standard error of a
 * service is untrusted. */
#ifndef ISOLATE_LOG_FORWARDER_H
#define ISOLATE_LOG_FORWARDER_H

#include <monkey/buf.h>
#include <sys/types.h>

struct isolate_log_forwarder {
    const char *name;
    const char *log; /* see mk_config_error_log() */
    bool to_file, to_syslog;
    bool has_priorities; /* see mk_config_error_log_has_priorities() */
    bool is_json;        /* see mk_config_error_log_is_json() */
    pid_t group;         /* process group whose members may write their pids into lines; 0: none */
    struct mk_buf rest;  /* incomplete last line */
};

void isolate_log_forwarder_init(struct isolate_log_forwarder *l, const char *name, const char *log,
                                bool has_priorities, bool is_json);
/* Appends output of the group. Writes a line when it is complete or reaches 16 KB. */
void isolate_log_forwarder_append(struct isolate_log_forwarder *l, mk_str text);
/* Writes the incomplete last line at the end of the output. */
void isolate_log_forwarder_flush(struct isolate_log_forwarder *l);
/* Logs a message of the supervisor itself. */
void isolate_log_forwarder_printf(struct isolate_log_forwarder *l, const char *level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
