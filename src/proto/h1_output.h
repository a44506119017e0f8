/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1 response on its way out: its head, then its content as fast as the socket has room. */
#ifndef MK_PROTO_H1_OUTPUT_H
#define MK_PROTO_H1_OUTPUT_H

#include "proto/h1.h"

enum mk_h1_progress {
    MK_H1_COMPLETE,    /* every byte was handed over, or stands in the scratch */
    MK_H1_WAITS_ROOM,  /* for the socket */
    MK_H1_WAITS_INPUT, /* for whoever makes the content */
    MK_H1_BROKEN,      /* h->ending says why */
};

/* Seals the response and writes its head into the scratch. h->keep must be decided. False: the connection is
 * broken, h->ending says why. */
bool mk_h1_output_head(struct mk_h1 *h) MK_MUST_USE;
/* Goes on with the content. */
enum mk_h1_progress mk_h1_output_content(struct mk_h1 *h);
/* The same for what we say in a tunnel. */
enum mk_h1_progress mk_h1_output_tunnel(struct mk_h1 *h);
/* Sends what the scratch and the queue hold. */
enum mk_h1_progress mk_h1_output_flush(struct mk_h1 *h);

/* For when there is no room for a request: a whole response from a literal, sent at once as far as it goes.
 * `status` is 429 (this client has its share) or 503. */
void mk_h1_output_busy(struct mk_conn *c, unsigned status);

#endif
