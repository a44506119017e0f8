/* SPDX-License-Identifier: Apache-2.0 */
/* Sends an HTTP/1 response: its head, then as much of its body as the socket accepts. */
#ifndef MK_CONNECTION_H1_OUTPUT_H
#define MK_CONNECTION_H1_OUTPUT_H

#include "connection/h1_types.h"

/* Progress of sending a response. */
enum mk_h1_progress {
    MK_H1_COMPLETE,       /* all bytes are sent or in the output buffer */
    MK_H1_SOCKET_FULL,    /* waits for the socket */
    MK_H1_BODY_NOT_READY, /* waits for the body source or a disk */
    MK_H1_BROKEN,         /* see h->d.outcome */
};

/* Appends an interim response to the output buffer. Returns 0, or -EAGAIN: there is no space, earlier output
 * is still queued, or the connection is not being served. */
mk_err mk_h1_output_1xx(struct mk_h1 *h, unsigned status, const struct mk_header *fields,
                        size_t n) MK_MUST_USE;
/* Seals the response and writes its head to the output buffer. h->persistence must be decided. False: the
 * connection is broken; see h->d.outcome. */
bool mk_h1_output_head(struct mk_h1 *h) MK_MUST_USE;
/* Continues with the body. */
enum mk_h1_progress mk_h1_output_body(struct mk_h1 *h);
/* Continues with the outgoing direction of a tunnel. */
enum mk_h1_progress mk_h1_output_tunnel(struct mk_h1 *h);
/* Sends the contents of the output buffer and of the send queue. */
enum mk_h1_progress mk_h1_output_flush(struct mk_h1 *h);

/* Complete response for a rejected connection: `status` is 429 (client limit) or 503. */
mk_str mk_h1_output_rejection(unsigned status);

#endif
