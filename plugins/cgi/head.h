/* SPDX-License-Identifier: Apache-2.0 */
/* What a script says before its content (RFC 3875, section 6): text in, facts out. It knows no process and no
 * request. */
#ifndef CGI_HEAD_H
#define CGI_HEAD_H

#include <monkey/text.h>

struct cgi_head {
    unsigned status;   /* 0: it said none */
    mk_str location;   /* absent: none */
    mk_str type;       /* absent: none */
    int64_t length;    /* of the content, as the script says; -1: it does not */
    unsigned n_others; /* fields besides Status, Location, Content-Type and those that are the server's */
    mk_str fields;     /* all lines, for cgi_head_next() */
    const char *wrong; /* why it is none */
    mk_str where;      /* the line that is */
};

/* How long the head is, with the empty line that ends it (LF or CRLF); 0: its end is not there yet. `seen`
 * bytes were looked at before. */
size_t cgi_head_end(mk_str text, size_t seen);

/* All slices are of `text`, which is a whole head. False: see h->wrong. */
bool cgi_head_parse(struct cgi_head *h, mk_str text);

/* The next field that goes to the client, Content-Type and Location too; false at the end. */
bool cgi_head_next(mk_str *rest, mk_str *name, mk_str *value);

/* Where the client is to go, is that a path of this server and nothing else (section 6.2.2)? */
bool cgi_head_is_local_redirect(const struct cgi_head *h);

/* The first line of a script that speaks HTTP itself (section 5): 1 and its status, 0 when it is not whole
 * yet, -1 when it is none. */
int cgi_head_status_line(mk_str text, unsigned *status);

#endif
