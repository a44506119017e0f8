/* SPDX-License-Identifier: Apache-2.0 */
/* What a generation needs to speak TLS: the certificates and rules of its hosts, and which of them is for
 * whom. */
#ifndef MK_SERVER_CERTIFICATES_H
#define MK_SERVER_CERTIFICATES_H

#include "server/generation.h"

/* Once hosts are built and plugins have given them certificates. What is wrong goes to the report. */
void mk_certificates_build(struct mk_generation *g, struct mk_conf_report *report);
void mk_certificates_free(struct mk_generation *g);
/* Tells of those that end soon. */
void mk_certificates_remind(const struct mk_generation *g, struct mk_log *log);

enum { MK_CERTIFICATES_DATE = 32 };
/* "2026-12-31 23:59 UTC" */
void mk_certificates_write_date(int64_t when, char room[MK_CERTIFICATES_DATE]);

#endif
