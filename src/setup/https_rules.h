/* SPDX-License-Identifier: Apache-2.0 */
/* Rules from the TLS keys of a host that apply even in a server without TLS: redirects to HTTPS, HSTS, and
 * the rejection of plain requests where client certificates are required. */
#ifndef MK_SETUP_HTTPS_RULES_H
#define MK_SETUP_HTTPS_RULES_H

#include "setup/config_generation_type.h"

/* Call this after hosts are built. False: there is no host or no address, or an address has no valid host. */
bool mk_https_rules_setup(struct mk_config_generation *g, struct mk_conf_report *report) MK_MUST_USE;
/* Returns the position of the key in the host's section, or else in [SERVER], or else that of the host's
 * section. */
struct mk_conf_source_pos mk_https_rules_key_pos(const struct mk_config_generation *g,
                                                 const struct mk_vhost_config *s, const char *key);

enum { MK_HTTPS_RULES_DATE = 32 };
/* Writes "2026-12-31 23:59 UTC"; empty if the date is out of range. */
void mk_https_rules_format_date(int64_t when, char buf[MK_HTTPS_RULES_DATE]);

#endif
