/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a mail server, for which one handler waits. */
#ifndef DUDA_SMTP_SESSION_H
#define DUDA_SMTP_SESSION_H

#include <duda/smtp.h>
#include <duda/wait.h>

#include "conn/package_stream.h"
#include "protocol.h"

struct duda_smtp {
    mk_str name, server;
    uint32_t meter;
    mk_str hello, user, password;
    struct mk_upstream *upstream;
    uint32_t timeout_ms;
    uint64_t message_max;
    uint64_t failing_ms; /* in a worker: of all lines, as that of a link */
};

struct smtp_session {
    struct package_stream stream; /* the first: a link is its line */
    struct duda_wait wait;        /* of its handler, begun by the owner */
    struct duda_ctx *d;
    struct duda_smtp *smtp;
    struct package_request step;     /* what the handler waits for */
    int error;                       /* because of which it is down; 0: it is not */
    struct mk_buf in, out;           /* what is not read; the message as it is sent */
    struct mk_buf message;           /* as it was written */
    struct smtp_extensions can;      /* what EHLO has announced */
    unsigned code;                   /* of the last reply; 0: there was none */
    mk_str text;                     /* its text, which lives until the handler returns */
    struct smtp_extensions reply_as; /* that reply, read as an answer to EHLO */
};

/* It ends with the handler, or before by smtp_session_close(). NULL: memory is out. */
struct smtp_session *smtp_session_new(struct duda_ctx *d, struct duda_smtp *smtp);
void smtp_session_close(struct smtp_session *session);
int smtp_session_connect(struct smtp_session *session);
/* Each step may take as long as the Timeout of its link. */
int smtp_session_write(struct smtp_session *session, mk_str bytes);
/* Reads the next reply into code and text. */
int smtp_session_read(struct smtp_session *session);

#endif
