/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a mail server, used by one handler. */
#ifndef DUDA_SMTP_SESSION_H
#define DUDA_SMTP_SESSION_H

#include <duda/smtp.h>
#include <duda/wait.h>

#include "common/package_stream.h"
#include "protocol.h"

struct duda_smtp {
    mk_str name, server;
    uint32_t meter;
    mk_str hello, user, password;
    struct mk_upstream *upstream;
    uint32_t timeout_ms;
    uint64_t message_max;
    uint64_t failing_ms; /* like failing_ms of package_conn, but for all connections of the worker */
};

struct smtp_session {
    struct package_stream stream; /* must be first: a connection is cast to its session */
    struct duda_wait wait;        /* the handler's wait; the caller begins it */
    struct duda_ctx *d;
    struct duda_smtp *smtp;
    struct package_request step;                /* the step that the handler waits for */
    int error;                                  /* error that closed the connection; 0: none */
    struct mk_buf in, out;                      /* unparsed input; the formatted message */
    struct mk_buf message;                      /* the original message */
    struct smtp_extensions extensions;          /* announced by EHLO */
    unsigned code;                              /* code of the last reply; 0: none */
    mk_str text;                                /* text of that reply, valid until the handler returns */
    struct smtp_extensions extensions_in_reply; /* announced in that reply, if it is to EHLO */
};

/* The session ends with the handler, or earlier with smtp_session_close(). Returns NULL if out of memory. */
struct smtp_session *smtp_session_new(struct duda_ctx *d, struct duda_smtp *smtp);
void smtp_session_close(struct smtp_session *session);
int smtp_session_connect(struct smtp_session *session);
/* Each of these steps may take as long as Timeout. */
int smtp_session_write(struct smtp_session *session, mk_str bytes);
/* Reads the next reply into code and text. */
int smtp_session_read(struct smtp_session *session);

#endif
