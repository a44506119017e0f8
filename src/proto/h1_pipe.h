/* SPDX-License-Identifier: Apache-2.0 */
/* Large content on its way from one socket to another, through a pipe of the worker: no copy of it is made.
 * The pipe is empty between two calls; what the client's socket does not take is queued like other output. */
#ifndef MK_PROTO_H1_PIPE_H
#define MK_PROTO_H1_PIPE_H

#include "proto/h1_types.h"

/* The first piece is pulled: it leaves with the head, and an error page can still take its place. It is
 * small, but holds what a source has usually read with the head. */
enum { MK_H1_PIPE_FIRST = 16 * 1024 };

/* Can the content of a source that offers a pipe go through it? */
bool mk_h1_pipe_is_fit(const struct mk_h1 *h);
/* Sends the next piece, once the first one was pulled, and the scratch is empty. MK_H1_WAITS_ROOM: the
 * scratch has what the socket did not take. */
enum mk_h1_progress mk_h1_pipe_send(struct mk_h1 *h);

#endif
