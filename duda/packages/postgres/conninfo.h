/* SPDX-License-Identifier: Apache-2.0 */
/* The key Server: extracts hosts and files from a libpq connection string. */
#ifndef DUDA_POSTGRES_CONNINFO_H
#define DUDA_POSTGRES_CONNINFO_H

#include "conn.h"

/* Fills s->host_list, and lets sandboxed workers use the certificate files and the resolver. False: invalid;
 * already reported. */
bool postgres_conninfo_parse(struct mk_config *config, struct postgres_settings *s);

#endif
