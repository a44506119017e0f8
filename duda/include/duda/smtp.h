/* SPDX-License-Identifier: Apache-2.0 */
/* SMTP client (RFC 5321): submits mail to a mail server, with sequential calls. */
#ifndef DUDA_SMTP_H
#define DUDA_SMTP_H

#include <duda/mail.h>
#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-smtp.so: `#define DUDA_USE "duda-smtp"` before including <duda.h>, and
 * link with `pkg-config --libs duda-smtp`. The server is the mail relay of this machine or network, which
 * delivers messages to other servers; the configuration names it:
 *
 *     [SMTP]
 *         Server 127.0.0.1:25
 *
 * For TLS, set Server to an [UPSTREAM]: TLS then starts with the connection; STARTTLS is not supported. Each
 * message uses a new connection. Send mail from a job (duda/jobs.h): then no request waits, and a message
 * that the server temporarily rejects is retried.
 */

/** Maximum number of [SMTP] sections. */
enum { DUDA_SMTP_SERVERS_MAX = 16 };

/** A mail server: one [SMTP] section. */
struct duda_smtp;

/** Returns the server with this Name; NULL selects the only section or, if there are several, the one named
 * "main". The server is valid for the lifetime of the worker. Returns NULL, and logs an error, if there is
 * no such section; functions called with NULL return -ENODEV, which becomes status 503. */
MK_API struct duda_smtp *duda_smtp_find(struct duda_ctx *d, const char *name);
/** Like the function above, but without a handler: call it in a DUDA_START() function to detect a missing
 * section early. */
MK_API struct duda_smtp *duda_smtp_of(struct mk_worker *worker, const char *name);

/** A recipient that the server rejected. */
struct duda_smtp_rejected {
    mk_str address;
    unsigned code;        /**< 400 to 499: a temporary failure; 500 to 599: a permanent one */
    mk_str text;          /**< text of the server's reply */
    uint64_t reserved[2]; /**< for later releases */
};

/** The server's reply. It lives until the handler returns. */
struct duda_smtp_result {
    mk_str reply; /**< text of the last reply, in which servers name the queue ID of the message */
    const struct duda_smtp_rejected *rejected;
    size_t n_rejected;
    mk_str error;         /**< after an error: a NUL-terminated description of the error */
    uint64_t reserved[4]; /**< for later releases */
};

/**
 * Sends a message to all its recipients, and waits until the server has accepted it. Returns 0 if the server
 * has taken responsibility for delivery to all recipients except those in result->rejected; the caller
 * decides whether to send the message to those again.
 *
 * Errors, which result->error describes: -EBADMSG: permanently rejected, so a job that returns this error is
 * not retried; -EAGAIN: temporarily rejected; -EINVAL: the message is invalid (see duda_mail_write()) or has
 * a line of more than 998 bytes; -EMSGSIZE: the message exceeds MaxMessageSize or the server's limit;
 * -ETIMEDOUT: the server does not respond; -ECONNRESET, -EPIPE: the connection was lost (the message may have
 * been accepted, so in rare cases it arrives twice); -ECONNREFUSED, -EHOSTUNREACH and other errors of
 * connect(2); -EPROTO: not an SMTP server; -ENOKEY: the server rejects the User or its password, does not
 * offer AUTH PLAIN, or requires authentication or TLS; -ENOMEM; or the error of a failed wait.
 *
 *     struct duda_smtp_result result;
 *     const struct duda_mail mail = {.from = MK_STR("shop@example.org"), .to = &job->payload, .n_to = 1,
 *                                    .subject = MK_STR("Welcome"), .body = MK_STR("Thank you.\n")};
 *     return duda_smtp_send(d, duda_smtp_find(d, NULL), &mail, &result);
 */
MK_API int duda_smtp_send_sized(struct duda_ctx *d, struct duda_smtp *smtp, const struct duda_mail *mail,
                                size_t mail_size, struct duda_smtp_result *result) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_smtp_send(struct duda_ctx *d, struct duda_smtp *smtp,
                                                 const struct duda_mail *mail,
                                                 struct duda_smtp_result *result)
{
    return duda_smtp_send_sized(d, smtp, mail, sizeof *mail, result);
}

/** A message and its envelope, for duda_smtp_send_raw(). */
struct duda_smtp_message {
    mk_str from;      /**< envelope sender, which receives bounces; empty: no bounces */
    const mk_str *to; /**< n_to envelope recipients, up to DUDA_MAIL_RECIPIENTS_MAX */
    size_t n_to;
    mk_str text; /**< header and body, sent unchanged except that line endings become CR LF; NULs are
                      rejected */
};
/** Sends a message composed elsewhere, for example one with attachments: recipients see its header, while
 * `to` lists the envelope recipients. -EOPNOTSUPP: the message has bytes above 127, which the server does not
 * accept. */
MK_API int duda_smtp_send_raw_sized(struct duda_ctx *d, struct duda_smtp *smtp,
                                    const struct duda_smtp_message *message, size_t message_size,
                                    struct duda_smtp_result *result) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_smtp_send_raw(struct duda_ctx *d, struct duda_smtp *smtp,
                                                     const struct duda_smtp_message *message,
                                                     struct duda_smtp_result *result)
{
    return duda_smtp_send_raw_sized(d, smtp, message, sizeof *message, result);
}

#ifdef __cplusplus
}
#endif

#endif
