/* SPDX-License-Identifier: Apache-2.0 */
/* The first protocol of a connection where somebody wants a word about it: accept hooks look at the peer and
 * at what he sent, and let him in to HTTP, or not. Public: monkey/connection.h. */
#ifndef MK_PROTO_DOOR_H
#define MK_PROTO_DOOR_H

#include "proto/conn.h"

/* For services that have accept hooks. */
extern const struct mk_conn_ops mk_door_ops;

#endif
