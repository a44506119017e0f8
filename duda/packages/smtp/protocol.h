/* SPDX-License-Identifier: Apache-2.0 */
/* The SMTP protocol: parses replies and formats messages. No I/O. */
#ifndef DUDA_SMTP_PROTOCOL_H
#define DUDA_SMTP_PROTOCOL_H

#include <monkey/buf.h>
#include <sys/types.h>

/* A reply line may have 512 bytes (RFC 5321, section 4.5.3.1.5), but some servers exceed that. */
enum { SMTP_LINE_MAX = 2048, SMTP_LINES_MAX = 100, SMTP_TEXT_LINE_MAX = 998 };

struct smtp_reply {
    unsigned code;
    mk_str lines; /* the whole reply, with codes */
};

/* Returns the length of the reply at the start of the text, 0 if it is incomplete, or -EPROTO if it is
 * malformed. */
ssize_t smtp_reply_parse(mk_str text, struct smtp_reply *out);
/* Joins all lines with blanks, and removes anything unsafe for a log or a terminal. */
void smtp_reply_format_printable(struct mk_buf *out, const struct smtp_reply *reply);

/* The extensions announced by EHLO. */
struct smtp_extensions {
    bool has_8bitmime, auth_plain, has_size;
    uint64_t size_max; /* 0: no limit */
};
struct smtp_extensions smtp_extensions_parse(const struct smtp_reply *reply);

/* Formats the message for DATA: line endings become CR LF, leading dots are doubled, and a line with a single
 * dot ends the message. Returns 0, -EINVAL if the message contains a NUL or a line that is too long, or
 * -ENOMEM. */
int smtp_data_format(struct mk_buf *out, mk_str text);
bool smtp_is_8bit(mk_str text);

#endif
