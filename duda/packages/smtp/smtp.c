/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one message per connection. Each command waits for its reply: pipelining would gain nothing with a
 * nearby server. */
#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/sized.h>
#include <monkey/text.h>

#include "common/package.h"
#include "session.h"

/* duda_mail_write() encodes this many bytes as one line. */
enum { BASE64_BYTES = 57, BASE64_LINE = 77 };
enum { COMMAND_MAX = 4096, GOODBYE_MS = 1000 };

/* Returns whether the server requires or rejects authentication (RFC 4954, section 6). If so, the message is
 * not at fault. */
static bool is_auth_required(unsigned code)
{
    return code == 530 || code == 534 || code == 535 || code == 538;
}

/* Maps the code of a permanent or temporary rejection. */
static int reply_code_to_errno(unsigned code)
{
    return is_auth_required(code) ? -ENOKEY : code >= 500 ? -EBADMSG : code >= 400 ? -EAGAIN : -EPROTO;
}

static const char *smtp_error_message(int e)
{
    return e == -EPROTO       ? "the server does not speak SMTP"
           : e == -ENOKEY     ? "the server does not support AUTH PLAIN"
           : e == -EOPNOTSUPP ? "the server does not accept 8-bit messages"
           : e == -EMSGSIZE   ? "the message is too long, or has too many recipients"
           : e == -EINVAL     ? "an address is invalid, or a line is too long or contains NUL"
                              : strerror(-e);
}

static int set_smtp_error(const struct smtp_session *session, struct duda_smtp_result *result,
                          const char *step, int e)
{
    mk_str server = session->stream.base.server, name = session->smtp->name;
    if (e == -ECANCELED)
        return e;
    if (session->code >= 400)
        result->error = duda_sprintf(session->d, "[SMTP] %.*s, %.*s: %s: %u %.*s", MK_STR_ARG(name),
                                     MK_STR_ARG(server), step, session->code, MK_STR_ARG(session->text));
    else
        result->error = duda_sprintf(
            session->d, "[SMTP] %.*s, %.*s: %s: %s", MK_STR_ARG(name), MK_STR_ARG(server), step,
            session->error ? package_conn_error_reason(&session->stream.base) : smtp_error_message(e));
    return duda_reason(session->d, package_conn_map_errno(e), "%.*s", MK_STR_ARG(result->error));
}

/* Sends a command, and expects a reply whose code begins with the digit `expected` (2 or 3). */
static int send_command(struct smtp_session *session, mk_str command, unsigned expected)
{
    int e = command.len ? smtp_session_write(session, command) : 0;
    session->code = 0;
    if (!e)
        e = smtp_session_read(session);
    return e ? e : session->code / 100 == expected ? 0 : reply_code_to_errno(session->code);
}

static int send_ehlo(struct smtp_session *session)
{
    mk_str name = session->smtp->hello;
    mk_str ehlo = duda_sprintf(session->d, "EHLO %.*s\r\n", MK_STR_ARG(name));
    mk_str helo = duda_sprintf(session->d, "HELO %.*s\r\n", MK_STR_ARG(name));
    if (!ehlo.p || !helo.p)
        return -ENOMEM;
    int e = send_command(session, ehlo, 2);
    if (e == -EBADMSG) { /* the server does not know EHLO */
        e = send_command(session, helo, 2);
        session->extensions_in_reply = (struct smtp_extensions){.has_size = false};
    }
    session->extensions = session->extensions_in_reply;
    return e;
}

/* Authenticates with AUTH PLAIN (RFC 4954, RFC 4616). */
static int authenticate(struct smtp_session *session)
{
    const struct duda_smtp *s = session->smtp;
    char *buf = s->user.len ? duda_alloc(session->d, COMMAND_MAX) : NULL;
    struct mk_buf command = mk_buf_fixed(buf, COMMAND_MAX);
    if (!s->user.len)
        return 0;
    if (!session->extensions.auth_plain)
        return -ENOKEY;
    mk_str plain =
        duda_sprintf(session->d, "%c%.*s%c%.*s", 0, MK_STR_ARG(s->user), 0, MK_STR_ARG(s->password));
    if (!buf || !plain.p)
        return -ENOMEM;
    mk_buf_add(&command, MK_STR("AUTH PLAIN "));
    mk_base64_encode(&command, plain);
    mk_buf_add(&command, MK_STR("\r\n"));
    int e = command.failed ? -ENOKEY : send_command(session, mk_buf_str(&command), 2);
    return e == -EBADMSG || e == -EPROTO ? -ENOKEY : e;
}

static int send_mail_from(struct smtp_session *session, const struct duda_smtp_message *m)
{
    const struct smtp_extensions *x = &session->extensions;
    bool is_8bit = smtp_is_8bit(m->text);
    const char *body = is_8bit ? " BODY=8BITMIME" : "";
    if (is_8bit && !x->has_8bitmime)
        return -EOPNOTSUPP;
    if (x->size_max && session->out.len > x->size_max)
        return -EMSGSIZE;
    mk_str command = x->has_size
                         ? duda_sprintf(session->d, "MAIL FROM:<%.*s>%s SIZE=%zu\r\n", MK_STR_ARG(m->from),
                                        body, session->out.len)
                         : duda_sprintf(session->d, "MAIL FROM:<%.*s>%s\r\n", MK_STR_ARG(m->from), body);
    return command.p ? send_command(session, command, 2) : -ENOMEM;
}

/* Records rejected recipients. Any other error ends the session. */
static int send_rcpt_to(struct smtp_session *session, const struct duda_smtp_message *m,
                        struct duda_smtp_result *result)
{
    struct duda_smtp_rejected *rejected = duda_alloc(session->d, m->n_to * sizeof *rejected);
    bool later = false;
    if (!rejected)
        return -ENOMEM;
    result->rejected = rejected;
    for (size_t i = 0; i < m->n_to; i++) {
        mk_str command = duda_sprintf(session->d, "RCPT TO:<%.*s>\r\n", MK_STR_ARG(m->to[i]));
        if (!command.p)
            return -ENOMEM;
        int e = send_command(session, command, 2);
        if (e && (e == -EPROTO || e == -ENOKEY || session->code < 400 || session->code == 421))
            return e;
        if (e)
            rejected[result->n_rejected++] = (struct duda_smtp_rejected){
                .address = duda_strdup(session->d, m->to[i]), .code = session->code, .text = session->text};
        later = later || e == -EAGAIN;
    }
    return result->n_rejected < m->n_to ? 0 : later ? -EAGAIN : -EBADMSG;
}

/* Ends the session. The server has already accepted the message, so errors no longer matter. */
static void send_quit(struct smtp_session *session)
{
    struct package_conn *l = &session->stream.base;
    l->timeout_ms = l->timeout_ms < GOODBYE_MS ? l->timeout_ms : GOODBYE_MS;
    (void)!send_command(session, MK_STR("QUIT\r\n"), 2);
}

static int deliver_message(struct smtp_session *session, const struct duda_smtp_message *m,
                           struct duda_smtp_result *result)
{
    int e = smtp_session_connect(session);
    if (e)
        return set_smtp_error(session, result, "connecting", e);
    if ((e = send_command(session, MK_STR_NULL, 2)) ||
        (e = send_ehlo(session))) /* these errors are not the fault of the message */
        return set_smtp_error(session, result, "greeting", e == -EBADMSG ? -EAGAIN : e);
    if ((e = authenticate(session)))
        return set_smtp_error(session, result, "AUTH", e);
    if ((e = send_mail_from(session, m)))
        return set_smtp_error(session, result, "MAIL", e);
    if ((e = send_rcpt_to(session, m, result)))
        return set_smtp_error(session, result, "RCPT", e);
    if ((e = send_command(session, MK_STR("DATA\r\n"), 3)))
        return set_smtp_error(session, result, "DATA", e);
    if ((e = smtp_session_write(session, mk_buf_str(&session->out))) ||
        (e = send_command(session, MK_STR_NULL, 2)))
        return set_smtp_error(session, result, "the message", e);
    result->reply = session->text;
    send_quit(session);
    return 0;
}

static int check_message(const struct duda_smtp *smtp, const struct duda_smtp_message *m)
{
    if (m->text.len > smtp->message_max || m->n_to > DUDA_MAIL_RECIPIENTS_MAX)
        return -EMSGSIZE;
    if (!m->n_to || (m->from.len && !duda_mail_is_address(m->from)))
        return -EINVAL;
    for (size_t i = 0; i < m->n_to; i++)
        if (!duda_mail_is_address(m->to[i]))
            return -EINVAL;
    return 0;
}

/* Sends `mail`, or the text of `m` if `mail` is NULL. */
static int send_message(struct smtp_session *session, const struct duda_mail *mail,
                        struct duda_smtp_message m, struct duda_smtp_result *result)
{
    int e = check_message(session->smtp, &m);
    if (!e && mail && m.text.len / BASE64_BYTES * BASE64_LINE > session->smtp->message_max)
        e = -EMSGSIZE;
    if (!e && mail) {
        e = duda_mail_write(&session->message, mail, (int64_t)mk_worker_now(duda_worker(session->d)));
        m.text = mk_buf_str(&session->message);
    }
    if (!e)
        e = smtp_data_format(&session->out, m.text);
    return e ? set_smtp_error(session, result, "the message", e) : deliver_message(session, &m, result);
}

static int run_session(struct duda_ctx *d, struct duda_smtp *smtp, const struct duda_mail *mail,
                       struct duda_smtp_message m, struct duda_smtp_result *result)
{
    struct package_call call;
    *result = (struct duda_smtp_result){.reply = MK_STR_NULL};
    int e = package_call_begin(&call, d, package_meter(duda_worker(d), smtp));
    if (e)
        return e;
    struct smtp_session *session = smtp_session_new(d, smtp);
    if (!session)
        return package_call_end(&call, -ENOMEM);
    e = duda_wait_begin(d, &session->wait, NULL); /* no cleanup: the connection ends with the handler */
    e = e ? e : send_message(session, mail, m, result);
    duda_wait_end(&session->wait);
    smtp_session_close(session);
    return package_call_end(&call, e);
}

int duda_smtp_send_raw_sized(struct duda_ctx *d, struct duda_smtp *smtp,
                             const struct duda_smtp_message *message, size_t message_size,
                             struct duda_smtp_result *result)
{
    struct duda_smtp_message full;
    message = mk_sized_in(&full, sizeof full, message, message_size);
    if (!smtp) {
        *result = (struct duda_smtp_result){.error = MK_STR("there is no such section [SMTP]")};
        return -ENODEV;
    }
    return run_session(d, smtp, NULL, *message, result);
}

int duda_smtp_send_sized(struct duda_ctx *d, struct duda_smtp *smtp, const struct duda_mail *mail,
                         size_t mail_size, struct duda_smtp_result *result)
{
    struct duda_mail full;
    mail = mk_sized_in(&full, sizeof full, mail, mail_size);
    if (!smtp) {
        *result = (struct duda_smtp_result){.error = MK_STR("there is no such section [SMTP]")};
        return -ENODEV;
    }
    const struct duda_smtp_message m = {
        .from = mail->from, .to = mail->to, .n_to = mail->n_to, .text = mail->body};
    return run_session(d, smtp, mail, m, result);
}
