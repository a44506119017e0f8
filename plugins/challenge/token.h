/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens, so that the server stores nothing: a task, which the client has to solve, and a pass, which it gets for
 * the solution. */
#ifndef CHALLENGE_TOKEN_H
#define CHALLENGE_TOKEN_H

#include <monkey/addr.h>
#include <monkey/text.h>

enum {
    CHALLENGE_TOKEN_LEN = 42,   /* hexadecimal digits: difficulty (2), time (8), MAC (32) */
    CHALLENGE_NONCE_MAX = 10,   /* digits; with the token, they fit into one block of SHA-256 */
    CHALLENGE_BITS_MAX = 24,    /* maximum difficulty */
    CHALLENGE_TASK_S = 10 * 60, /* how long a task is valid */
    CHALLENGE_SKEW_S = 60       /* tolerated difference between the clocks of machines that share a key */
};

enum challenge_kind { CHALLENGE_TASK, CHALLENGE_PASS };

/* The key, and the client and virtual host that a token is valid for. */
struct challenge_scope {
    mk_str key, host;
    struct mk_addr client; /* any address of the client's network */
};

struct challenge_token {
    unsigned bits; /* difficulty: number of zero bits */
    int64_t time;  /* a task: when it was issued; a pass: when it expires; seconds since the Unix epoch */
};

/* Returns false if the host name is too long. */
bool challenge_token_write(const struct challenge_scope *scope, enum challenge_kind kind,
                           const struct challenge_token *token, char out[CHALLENGE_TOKEN_LEN]);
/* Returns false if the text is no token that challenge_token_write() has written for this kind and scope. */
bool challenge_token_read(const struct challenge_scope *scope, enum challenge_kind kind, mk_str text,
                          struct challenge_token *token);

/* Is the task still valid? */
bool challenge_task_is_fresh(const struct challenge_token *task, int64_t now);
/* Is the nonce a solution of the task? */
bool challenge_task_is_solved(mk_str task, unsigned bits, mk_str nonce);
/* Does the pass allow requests at this time? A pass that expires later than a new one is not valid: the lifetime has
 * been reduced. */
bool challenge_pass_is_valid(const struct challenge_token *pass, unsigned bits, int64_t lifetime_s,
                             int64_t now);

/* May the client be redirected to this path and query? Returns false for anything that a browser might read as a URL of
 * another host, and for text that is not valid in a URL. */
bool challenge_target_is_local(mk_str target);

#endif
