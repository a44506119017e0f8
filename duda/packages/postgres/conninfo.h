/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts hosts and files from the libpq connection string in the key Server. */
#ifndef DUDA_POSTGRES_CONNINFO_H
#define DUDA_POSTGRES_CONNINFO_H

#include "conn.h"

/* Fills s->host_list, and lets sandboxed workers use the certificate files and the resolver. Reports an error
 * and returns false if the string is invalid. */
bool postgres_conninfo_parse(struct mk_config *config, struct postgres_settings *s);

#endif
