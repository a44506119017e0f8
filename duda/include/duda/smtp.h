/* SPDX-License-Identifier: Apache-2.0 */
/* Mail handed to a mail server over SMTP (RFC 5321), as a straight-line call. */
#ifndef DUDA_SMTP_H
#define DUDA_SMTP_H

#include <duda/mail.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-smtp.so: `#define DUDA_USE "duda-smtp",` ahead of <duda.h>, and link
 * with `pkg-config --libs duda-smtp`. The server is the mail server of this machine or network, which
 * delivers messages to others; the configuration says where it is:
 *
 *     [SMTP]
 *         Server 127.0.0.1:25
 *
 * With an [UPSTREAM] as Server, TLS begins with the connection; there is no STARTTLS. Each message has a
 * connection of its own. Send in a job (duda/jobs.h): no request waits then, and what the
 * server cannot take now is sent again.
 */

/** The most [SMTP] sections. */
enum { DUDA_SMTP_SERVERS_MAX = 16 };

/** A mail server: one [SMTP] section. */
struct duda_smtp;

/** The server of that Name; NULL names the first section. Valid as long as the worker. NULL: there is none. That is an error in the log, and functions
 * that are given NULL answer -ENODEV, which is status 503. */
MK_API struct duda_smtp *duda_smtp_find(struct duda_ctx *d, const char *name);

/** A recipient that the server has refused. */
struct duda_smtp_refused {
    mk_str address;
    unsigned code; /**< 400 to 499: it may take it later; 500 to 599: it will not */
    mk_str text;   /**< what it said */
};

/** What the server said; all of it lives until the handler returns. */
struct duda_smtp_result {
    mk_str text; /**< of its last reply, where servers tell the number under which they keep a message */
    const struct duda_smtp_refused *refused;
    size_t n_refused;
    mk_str problem; /**< after an error: what happened where; a NUL follows */
};

/**
 * Sends a message to all its recipients, and waits until the server has taken it. 0: it has, and answers for
 * it from now on, for all recipients but those of result->refused: to send the message again to these only is
 * the caller's business.
 *
 * Errors, which result->problem explains: -EBADMSG: the server refuses it for good, so that a job that
 * answers this is not tried again; -EAGAIN: it cannot take it now; -EINVAL: the message is none, see
 * duda_mail_write(), or has a line of more than 998 bytes; -EMSGSIZE: it is longer than MaxMessageSize, or than
 * the server takes; -ETIMEDOUT: the server is silent; -ECONNRESET, -EPIPE: the connection has ended (the
 * message may have been taken: rarely, one arrives twice); -ECONNREFUSED, -EHOSTUNREACH and others of
 * connect(2); -EPROTO: it does not speak SMTP; -ENOKEY: it refuses the User or its password, has no AUTH
 * PLAIN for it, or wants a log-in or TLS; -ENOMEM; or what waits answer.
 *
 *     struct duda_smtp_result result;
 *     const struct duda_mail mail = {.from = MK_STR("shop@example.org"), .to = &job->text, .n_to = 1,
 *                                    .subject = MK_STR("Welcome"), .text = MK_STR("Thank you.\n")};
 *     return duda_smtp_send(d, duda_smtp_find(d, NULL), &mail, &result);
 */
MK_API int duda_smtp_send(struct duda_ctx *d, struct duda_smtp *smtp, const struct duda_mail *mail,
                          struct duda_smtp_result *result) MK_API_MUST_USE;

/** What duda_smtp_send_text() sends, to whom. */
struct duda_smtp_message {
    mk_str from;      /**< where failures are reported; empty: nowhere */
    const mk_str *to; /**< n_to addresses, up to DUDA_MAIL_RECIPIENTS_MAX */
    size_t n_to;
    mk_str text; /**< header and content, as they are: line ends become CR LF, NULs are refused */
};
/** The same for a message that something else has written, with attachments for example: its header says what
 * readers see, and `to` names its recipients. -EOPNOTSUPP: it has bytes above 127, which the server does not
 * take. */
MK_API int duda_smtp_send_text(struct duda_ctx *d, struct duda_smtp *smtp,
                               const struct duda_smtp_message *message,
                               struct duda_smtp_result *result) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
