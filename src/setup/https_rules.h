/* SPDX-License-Identifier: Apache-2.0 */
/* Rules from the TLS keys of a host that apply even in a server without TLS: redirects to HTTPS, HSTS, and
 * the rejection of plain requests where client certificates are required. */
#ifndef MK_SETUP_HTTPS_RULES_H
#define MK_SETUP_HTTPS_RULES_H

#include "setup/config_generation_type.h"

/* Call this after hosts are built. False: an address has no valid hosts, and the error was reported. */
bool mk_https_rules_setup(struct mk_config_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* Position of the key in the section of the host, or else in [SERVER]. */
struct mk_conf_source_pos mk_https_rules_key_pos(const struct mk_config_generation *g,
                                                 const struct mk_vhost_config *s, const char *key);

enum { MK_HTTPS_RULES_DATE = 32 };
/* "2026-12-31 23:59 UTC" */
void mk_https_rules_format_date(int64_t when, char buf[MK_HTTPS_RULES_DATE]);

#endif
