/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of a session: connects, asks, prints what it is told. */
#ifndef SHELL_LINE_H
#define SHELL_LINE_H

#include <monkey/buf.h>

struct shell_line {
    const char *path;
    const char *prefix; /* of errors */
    int fd;             /* -1: there is no session now; it is begun when it is needed */
    struct mk_buf in;
    size_t in_at;      /* what stands before was read */
    char greeting[64]; /* of the server */
};

void shell_line_init(struct shell_line *l, const char *path);
void shell_line_close(struct shell_line *l);
/* 0; or 1, and it was said why. */
int shell_line_open(struct shell_line *l);
/* A line of less than SHELL_LINE_MAX bytes. Output goes to stdout, anything else to stderr. Answers an exit
 * code: 0 done, 1 failed, 2 wrong usage. */
int shell_line_ask(struct shell_line *l, mk_str command);
/* While nothing is asked: the server may have ended the session. */
void shell_line_look(struct shell_line *l);

#endif
