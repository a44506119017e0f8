/* SPDX-License-Identifier: Apache-2.0 */
/* What the server in front and `monkey run` tell each other, over a unix socket, a connection for each
 * question. The first line is the question:
 *
 *     ask html|text METHOD TARGET      may this request go on? Answered when nothing is being compiled any
 * more: `go`, or a page fault html|text METHOD TARGET
 * the service broke off instead of answering; answered by a page events                           a stream of
 * server-sent events, until a side closes it
 *
 * A page is a line `page STATUS TYPE` and the content, up to the end of the connection. */
#ifndef DUDA_DEV_IPC_PROTOCOL_H
#define DUDA_DEV_IPC_PROTOCOL_H

enum { DEV_LINE_MAX = 16 * 1024, DEV_PAGE_MAX = 1024 * 1024 };

#define DEV_EVENTS_PATH "/.duda/events"
#define DEV_DOC_PATH    "/.duda/doc"

#endif
