/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between the front server and `monkey run` over a Unix socket, with one connection per request.
 * The first line is the request:
 *
 *     check html|text METHOD TARGET    may this request proceed? The reply comes when no compiler runs:
 *                                      `go`, or a page
 *     fault html|text METHOD TARGET    the service failed to respond; the reply is a page
 *     events                           a stream of server-sent events, until one side closes it
 *
 * A page is a line `page STATUS TYPE` and the body, up to the end of the connection. */
#ifndef DUDA_DEV_IPC_PROTOCOL_H
#define DUDA_DEV_IPC_PROTOCOL_H

enum { DEV_LINE_MAX = 16 * 1024, DEV_PAGE_MAX = 1024 * 1024 };

#define DEV_EVENTS_PATH "/.duda/events"
#define DEV_DOC_PATH    "/.duda/doc"

#endif
