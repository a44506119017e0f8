/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a command starts: compilers, servers. */
#ifndef DUDA_DEV_CHILD_H
#define DUDA_DEV_CHILD_H

#include "words.h"

#include <sys/types.h>

/* A program under way; `out` and `err` are the ends of its pipes that we read, without blocking. */
struct dev_child {
    pid_t pid; /* 0: none */
    int out, err;
    struct mk_buf rest[2]; /* of their last lines, for dev_hearing_pass() */
};

/* Starts it with SIGINT ignored, so that Ctrl+C reaches us alone, and has it told to finish when we die.
 * False: reported. */
bool dev_child_start(struct dev_child *c, struct dev_words *words);
/* The same, with standard output to that descriptor, which stays the caller's, and standard error to ours. */
bool dev_child_start_to(struct dev_child *c, struct dev_words *words, int out);
/* The same, with standard output as ours, and only `err` for us. */
bool dev_child_start_heard(struct dev_child *c, struct dev_words *words);
/* Its exit status, as of waitpid(2), once it has ended; -1 until then. */
int dev_child_status(struct dev_child *c);
/* Sends the signal, waits for the end, and closes the pipes. */
void dev_child_stop(struct dev_child *c, int signal);
void dev_child_close(struct dev_child *c);

/* When that descriptor becomes readable, nothing is waited for any more: Ctrl+C. -1, as in the beginning:
 * there is none. */
void dev_child_end_with(int fd);
int dev_child_ending(void);

/* Runs it to its end, and puts what it says on both of its streams into `said`. The exit code; above 128 the
 * signal that ended it; 127: it could not be started, and `said` has the reason. It is killed when it takes
 * minutes. */
int dev_child_run(struct dev_words *words, struct mk_buf *said);

#endif
