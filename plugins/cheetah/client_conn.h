/* SPDX-License-Identifier: Apache-2.0 */
/* The client side of a session: connects, sends commands, prints responses. */
#ifndef CHEETAH_CLIENT_CONN_H
#define CHEETAH_CLIENT_CONN_H

#include <monkey/buf.h>

struct cheetah_client_conn {
    const char *path;
    const char *command; /* the command of the command line, such as "shell" */
    const char *prefix;  /* prefix of error messages */
    int fd;              /* -1: no session; the next command opens one */
    struct mk_buf in;
    size_t in_at;      /* offset of the first unprocessed byte of `in` */
    char greeting[64]; /* the line that the server sent when the session was opened */
};

void cheetah_client_conn_init(struct cheetah_client_conn *l, const char *path);
void cheetah_client_conn_close(struct cheetah_client_conn *l);
/* Returns 0, or 1 after printing an error message. */
int cheetah_client_conn_open(struct cheetah_client_conn *l);
/* Runs a line of less than CHEETAH_LINE_MAX bytes. Output goes to stdout, anything else to stderr. Returns an
 * exit code: 0 success, 1 failure, 2 wrong usage. */
int cheetah_client_conn_run_command(struct cheetah_client_conn *l, mk_str command);
/* Closes the connection if the server has ended the session. Call it between commands. */
void cheetah_client_conn_check_eof(struct cheetah_client_conn *l);

#endif
