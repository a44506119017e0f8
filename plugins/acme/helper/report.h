/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the plugin that started the helper: lines on standard output, each preceded by a letter. */
#ifndef ACME_REPORT_H
#define ACME_REPORT_H

#include <monkey/buf.h>
#include <monkey/log.h>

/* Writes to the server's error log. */
void acme_report_log(enum mk_log_level level, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* Describes a delay after a failure. The plugin logs it in its first run only: later runs follow the message about the failure. */
void acme_report_delay(const char *fmt, ...) MK_API_PRINTF(1, 2);
/* Requests the next run, `seconds` from now. */
void acme_report_next_run(uint64_t seconds);

/* A certificate of this run has been stored. */
void acme_report_issued(void);
/* This certificate, which was issued on demand, is due for renewal. */
void acme_report_due(const char *name);

/* A failure. */
struct acme_error {
    char type[128];   /* problem type (RFC 8555, section 6.7) without its prefix; "" for other failures */
    uint64_t wait_s;  /* delay that the authority demands; 0: none */
    unsigned status;  /* HTTP status; 0: no response */
    bool affects_all; /* not specific to this certificate: other certificates would also fail */
    char text[1024];
};

/* Always returns false, for `return acme_error_set(...)`. */
bool acme_error_set(struct acme_error *f, const char *fmt, ...) MK_API_PRINTF(2, 3);
/* Like acme_error_set(), but for failures of the account or the authority, which affect all certificates. */
bool acme_error_set_global(struct acme_error *f, const char *fmt, ...) MK_API_PRINTF(2, 3);

#endif
