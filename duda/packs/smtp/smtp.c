/* SPDX-License-Identifier: Apache-2.0 */
/* One message, from the greeting to its end. The server's replies come in the order of our commands, each of
 * which waits for its own: on the way to a server nearby, nothing is won by pipelining. */
#include <duda/asked.h>
#include <duda/memory.h>
#include <duda/wait.h>
#include <errno.h>
#include <monkey/text.h>

#include "line.h"
#include "sections.h"

/* duda_mail_write() makes a line of so many bytes out of these. */
enum { BASE64_BYTES = 57, BASE64_LINE = 77 };
enum { COMMAND_MAX = 4096, GOODBYE_MS = 1000 };

/* The server wants a log-in, or another one (RFC 4954, section 6): that is no fault of the message. */
static bool is_about_log_in(unsigned code)
{
    return code == 530 || code == 534 || code == 535 || code == 538;
}

/* A refusal: for good, or for now. */
static int refusal(unsigned code)
{
    return is_about_log_in(code) ? -ENOKEY : code >= 500 ? -EBADMSG : code >= 400 ? -EAGAIN : -EPROTO;
}

static const char *words_for(int e)
{
    return e == -EPROTO       ? "it does not speak SMTP"
           : e == -ENOKEY     ? "it announces no AUTH PLAIN"
           : e == -EOPNOTSUPP ? "it takes no bytes above 127"
           : e == -EMSGSIZE   ? "the message is too long"
           : e == -EINVAL     ? "an address or a line is not as it must be"
                              : strerror(-e);
}

static int explain(const struct smtp_line *line, struct duda_smtp_result *result, const char *when, int e)
{
    mk_str server = line->stream.link.server, name = line->smtp->name;
    if (e == -ECANCELED)
        return e;
    if (line->code >= 400)
        result->problem = duda_print(line->d, "[SMTP] %.*s, %.*s: %s: %u %.*s", MK_STR_ARG(name),
                                     MK_STR_ARG(server), when, line->code, MK_STR_ARG(line->text));
    else
        result->problem =
            duda_print(line->d, "[SMTP] %.*s, %.*s: %s: %s", MK_STR_ARG(name), MK_STR_ARG(server), when,
                       line->error ? pack_link_reason(&line->stream.link) : words_for(e));
    return duda_reason(line->d, pack_link_error(e), "%.*s", MK_STR_ARG(result->problem));
}

/* Sends a command, and wants a reply of that class (2 or 3). */
static int say(struct smtp_line *line, mk_str command, unsigned wanted)
{
    int e = command.len ? smtp_line_write(line, command) : 0;
    line->code = 0;
    if (!e)
        e = smtp_line_read(line);
    return e ? e : line->code / 100 == wanted ? 0 : refusal(line->code);
}

static int hello(struct smtp_line *line)
{
    mk_str name = line->smtp->hello;
    mk_str ehlo = duda_print(line->d, "EHLO %.*s\r\n", MK_STR_ARG(name));
    mk_str helo = duda_print(line->d, "HELO %.*s\r\n", MK_STR_ARG(name));
    if (!ehlo.p || !helo.p)
        return -ENOMEM;
    int e = say(line, ehlo, 2);
    if (e == -EBADMSG) { /* older than 1995 */
        e = say(line, helo, 2);
        line->reply_as = (struct smtp_extensions){.has_size = false};
    }
    line->can = line->reply_as;
    return e;
}

/* AUTH PLAIN (RFC 4954, RFC 4616). */
static int log_in(struct smtp_line *line)
{
    const struct duda_smtp *s = line->smtp;
    char *room = s->user.len ? duda_alloc(line->d, COMMAND_MAX) : NULL;
    struct mk_buf command = mk_buf_fixed(room, COMMAND_MAX);
    if (!s->user.len)
        return 0;
    if (!line->can.auth_plain)
        return -ENOKEY;
    mk_str plain = duda_print(line->d, "%c%.*s%c%.*s", 0, MK_STR_ARG(s->user), 0, MK_STR_ARG(s->password));
    if (!room || !plain.p)
        return -ENOMEM;
    mk_buf_add(&command, MK_STR("AUTH PLAIN "));
    mk_base64_encode(&command, plain);
    mk_buf_add(&command, MK_STR("\r\n"));
    int e = command.failed ? -ENOKEY : say(line, mk_buf_str(&command), 2);
    return e == -EBADMSG || e == -EPROTO ? -ENOKEY : e;
}

static int name_sender(struct smtp_line *line, const struct duda_smtp_message *m)
{
    const struct smtp_extensions *x = &line->can;
    bool is_8bit = smtp_is_8bit(m->text);
    const char *body = is_8bit ? " BODY=8BITMIME" : "";
    if (is_8bit && !x->takes_8bit)
        return -EOPNOTSUPP;
    if (x->size_max && line->out.len > x->size_max)
        return -EMSGSIZE;
    mk_str command = x->has_size ? duda_print(line->d, "MAIL FROM:<%.*s>%s SIZE=%zu\r\n", MK_STR_ARG(m->from),
                                              body, line->out.len)
                                 : duda_print(line->d, "MAIL FROM:<%.*s>%s\r\n", MK_STR_ARG(m->from), body);
    return command.p ? say(line, command, 2) : -ENOMEM;
}

/* Refused recipients are noted; an error ends all. */
static int name_recipients(struct smtp_line *line, const struct duda_smtp_message *m,
                           struct duda_smtp_result *result)
{
    struct duda_smtp_refused *refused = duda_alloc(line->d, m->n_to * sizeof *refused);
    bool later = false;
    if (!refused)
        return -ENOMEM;
    result->refused = refused;
    for (size_t i = 0; i < m->n_to; i++) {
        mk_str command = duda_print(line->d, "RCPT TO:<%.*s>\r\n", MK_STR_ARG(m->to[i]));
        if (!command.p)
            return -ENOMEM;
        int e = say(line, command, 2);
        if (e && (e == -EPROTO || e == -ENOKEY || line->code < 400 || line->code == 421))
            return e;
        if (e)
            refused[result->n_refused++] = (struct duda_smtp_refused){
                .address = duda_copy(line->d, m->to[i]), .code = line->code, .text = line->text};
        later = later || e == -EAGAIN;
    }
    return result->n_refused < m->n_to ? 0 : later ? -EAGAIN : -EBADMSG;
}

/* The message is the server's by now: nothing that happens here matters. */
static void say_goodbye(struct smtp_line *line)
{
    struct pack_link *l = &line->stream.link;
    l->timeout_ms = l->timeout_ms < GOODBYE_MS ? l->timeout_ms : GOODBYE_MS;
    (void)!say(line, MK_STR("QUIT\r\n"), 2);
}

static int deliver(struct smtp_line *line, const struct duda_smtp_message *m, struct duda_smtp_result *result)
{
    int e = smtp_line_connect(line);
    if (e)
        return explain(line, result, "connecting", e);
    if ((e = say(line, MK_ABSENT, 2)) || (e = hello(line))) /* no fault of the message */
        return explain(line, result, "greeting", e == -EBADMSG ? -EAGAIN : e);
    if ((e = log_in(line)))
        return explain(line, result, "AUTH", e);
    if ((e = name_sender(line, m)))
        return explain(line, result, "MAIL", e);
    if ((e = name_recipients(line, m, result)))
        return explain(line, result, "RCPT", e);
    if ((e = say(line, MK_STR("DATA\r\n"), 3)))
        return explain(line, result, "DATA", e);
    if ((e = smtp_line_write(line, mk_buf_str(&line->out))) || (e = say(line, MK_ABSENT, 2)))
        return explain(line, result, "the message", e);
    result->text = line->text;
    say_goodbye(line);
    return 0;
}

static int check(const struct duda_smtp *smtp, const struct duda_smtp_message *m)
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

/* `mail`, or the text of `m` if it is NULL. */
static int run(struct smtp_line *line, const struct duda_mail *mail, struct duda_smtp_message m,
               struct duda_smtp_result *result)
{
    int e = check(line->smtp, &m);
    if (!e && mail && m.text.len / BASE64_BYTES * BASE64_LINE > line->smtp->message_max)
        e = -EMSGSIZE;
    if (!e && mail) {
        e = duda_mail_write(&line->message, mail, (int64_t)mk_worker_now(duda_worker(line->d)));
        m.text = mk_buf_str(&line->message);
    }
    if (!e)
        e = smtp_data_write(&line->out, m.text);
    return e ? explain(line, result, "the message", e) : deliver(line, &m, result);
}

static int transact(struct duda *d, struct duda_smtp *smtp, const struct duda_mail *mail,
                    struct duda_smtp_message m, struct duda_smtp_result *result)
{
    struct pack_call call;
    *result = (struct duda_smtp_result){.text = MK_ABSENT};
    int e = pack_call_begin(&call, d, pack_meter(duda_worker(d), smtp));
    if (e)
        return e;
    struct smtp_line *line = smtp_line_new(d, smtp);
    if (!line)
        return pack_call_end(&call, -ENOMEM);
    e = duda_wait_begin(d, &line->wait,
                        NULL); /* there is nothing to take back: the line ends with the handler */
    e = e ? e : run(line, mail, m, result);
    duda_wait_end(&line->wait);
    smtp_line_close(line);
    return pack_call_end(&call, e);
}

int duda_smtp_send_text(struct duda *d, struct duda_smtp *smtp, const struct duda_smtp_message *message,
                        struct duda_smtp_result *result)
{
    if (!smtp) {
        *result = (struct duda_smtp_result){.problem = MK_STR("there is no such [SMTP]")};
        return -ENODEV;
    }
    return transact(d, smtp, NULL, *message, result);
}

int duda_smtp_send(struct duda *d, struct duda_smtp *smtp, const struct duda_mail *mail,
                   struct duda_smtp_result *result)
{
    if (!smtp) {
        *result = (struct duda_smtp_result){.problem = MK_STR("there is no such [SMTP]")};
        return -ENODEV;
    }
    const struct duda_smtp_message m = {
        .from = mail->from, .to = mail->to, .n_to = mail->n_to, .text = mail->text};
    return transact(d, smtp, mail, m, result);
}
