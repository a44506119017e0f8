/* SPDX-License-Identifier: Apache-2.0 */
/* What a mail server says, and what a message is on its way there. Pure: no connection. */
#ifndef DUDA_SMTP_PROTOCOL_H
#define DUDA_SMTP_PROTOCOL_H

#include <monkey/buf.h>
#include <sys/types.h>

/* A line of a reply may have 512 bytes (RFC 5321, section 4.5.3.1.5); servers are not that strict. */
enum { SMTP_LINE_MAX = 2048, SMTP_LINES_MAX = 100, SMTP_TEXT_LINE_MAX = 998 };

struct smtp_reply {
    unsigned code;
    mk_str lines; /* all of it, with the codes */
};

/* The length of the reply at the begin of the text; 0: it is not whole yet; -EPROTO: it is none. */
ssize_t smtp_reply_parse(mk_str text, struct smtp_reply *out);
/* The text of the next line, without its code and end; false: there are no more. `rest` is reply.lines at
 * first. */
bool smtp_reply_next_line(mk_str *rest, mk_str *line);
/* All lines, with blanks between them, without anything that a log or a terminal must not get. */
void smtp_reply_format_printable(struct mk_buf *out, const struct smtp_reply *reply);

/* What EHLO has announced. */
struct smtp_extensions {
    bool takes_8bit, auth_plain, has_size;
    uint64_t size_max; /* 0: no limit */
};
struct smtp_extensions smtp_extensions_parse(const struct smtp_reply *reply);

/* Writes the message as DATA takes it: each line end is CR LF, each line that begins with a dot has one more,
 * and a line of one dot ends it. -EINVAL: there is a NUL, or a line that is too long; -ENOMEM. */
int smtp_data_format(struct mk_buf *out, mk_str text);
bool smtp_is_8bit(mk_str text);

#endif
