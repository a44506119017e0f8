/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the plugin that started the helper: lines on standard output, each preceded by a letter. */
#ifndef OTLP_REPORT_H
#define OTLP_REPORT_H

#include <monkey/log.h>
#include <monkey/str.h>
#include <stdint.h>

/* Writes to the server's error log. */
void otlp_report_log(enum mk_log_level level, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* Reports how many spans the helper has read, the collector has accepted, and the helper has lost since the start. */
void otlp_report_counters(uint64_t n_read, uint64_t n_exported, uint64_t n_lost);

#endif
