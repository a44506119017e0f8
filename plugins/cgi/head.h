/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a script's output (RFC 3875, section 6): text in, facts out. It knows no process and no
 * request. */
#ifndef CGI_HEAD_H
#define CGI_HEAD_H

#include <monkey/text.h>

struct cgi_head {
    unsigned status; /* 0: none */
    mk_str location; /* absent: none */
    mk_str type;     /* absent: none */
    int64_t length;  /* of the content, as the script says; -1: unknown */
    unsigned
        n_others;  /* fields other than Status, Location, Content-Type and those that only the server sets */
    mk_str fields; /* all lines, for cgi_head_next() */
    const char *wrong; /* the mistake */
    mk_str where;      /* its line */
};

/* Length of the head, with the empty line that ends it (LF or CRLF); 0: its end is not there yet. `seen`
 * bytes were examined before. */
size_t cgi_head_end(mk_str text, size_t seen);

/* All slices are of `text`, which is a complete head. False: see h->wrong. */
bool cgi_head_parse(struct cgi_head *h, mk_str text);

/* The next field that goes to the client, Content-Type and Location too; false at the end. */
bool cgi_head_next(mk_str *rest, mk_str *name, mk_str *value);

/* Is the Location a path of this server, and does the head say nothing else (section 6.2.2)? */
bool cgi_head_is_local_redirect(const struct cgi_head *h);

/* The first line of a script that speaks HTTP itself (section 5): 1 and its status, 0 when it is incomplete,
 * -1 when it is no status line. */
int cgi_head_status_line(mk_str text, unsigned *status);

#endif
