/* SPDX-License-Identifier: Apache-2.0 */
/* The key Server: what a connection string of libpq says of hosts and files. */
#ifndef DUDA_POSTGRES_CONNINFO_H
#define DUDA_POSTGRES_CONNINFO_H

#include "conn.h"

/* Fills s->places, and tells the sandbox what workers need. False: it is wrong, and that is reported. */
bool postgres_conninfo_parse(struct mk_config *config, struct postgres_settings *s);

#endif
