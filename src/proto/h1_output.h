/* SPDX-License-Identifier: Apache-2.0 */
/* Sends an HTTP/1 response: its head, then its content as far as the socket has room. */
#ifndef MK_PROTO_H1_OUTPUT_H
#define MK_PROTO_H1_OUTPUT_H

#include "proto/h1_types.h"

/* How far the output of a response is. */
enum mk_h1_progress {
    MK_H1_COMPLETE,       /* every byte is sent or in the scratch */
    MK_H1_SOCKET_FULL,    /* waits for the socket */
    MK_H1_BODY_NOT_READY, /* waits for the source or a disk */
    MK_H1_BROKEN,         /* h->d.ending says why */
};

/* An interim response, behind what is in the scratch. 0 or -EAGAIN: there is no room for it. */
mk_err mk_h1_output_1xx(struct mk_h1 *h, unsigned status, const struct mk_header *fields,
                        size_t n) MK_MUST_USE;
/* Seals the response and writes its head into the scratch. h->persistence must be decided. False: the
 * connection is broken, h->d.ending says why. */
bool mk_h1_output_head(struct mk_h1 *h) MK_MUST_USE;
/* Continues with the content. */
enum mk_h1_progress mk_h1_output_body(struct mk_h1 *h);
/* Continues with the server's direction of a tunnel. */
enum mk_h1_progress mk_h1_output_tunnel(struct mk_h1 *h);
/* Sends what is in the scratch and the queue. */
enum mk_h1_progress mk_h1_output_flush(struct mk_h1 *h);

/* A complete response for a connection that is not served: `status` is 429 (this client has its share) or
 * 503. */
mk_str mk_h1_output_rejection(unsigned status);

#endif
