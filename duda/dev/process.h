/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a command starts: compilers, servers. */
#ifndef DUDA_DEV_PROCESS_H
#define DUDA_DEV_PROCESS_H

#include "argv.h"

#include <sys/types.h>

/* A program under way; `out` and `err` are the ends of its pipes that we read, without blocking. */
struct dev_process {
    pid_t pid; /* 0: none */
    int out, err;
    struct mk_buf rest[2]; /* of their last lines, for dev_stderr_reader_read_lines() */
};

/* Starts it with SIGINT ignored, so that Ctrl+C reaches us alone, and has it told to finish when we die.
 * False: reported. */
bool dev_process_start(struct dev_process *c, struct dev_argv *words);
/* The same, with standard output to that descriptor, which stays the caller's, and standard error to ours. */
bool dev_process_start_stdout_to(struct dev_process *c, struct dev_argv *words, int out);
/* The same, with standard output as ours, and only `err` for us. */
bool dev_process_start_piped_stderr(struct dev_process *c, struct dev_argv *words);
/* Its exit status, as of waitpid(2), once it has ended; -1 until then. */
int dev_process_try_wait(struct dev_process *c);
/* Sends the signal, waits for the end, and closes the pipes. */
void dev_process_stop(struct dev_process *c, int signal);
void dev_process_close_pipes(struct dev_process *c);

/* When that descriptor becomes readable, nothing is waited for any more: Ctrl+C. -1, as in the beginning:
 * there is none. */
void dev_process_set_interrupt_fd(int fd);
int dev_process_interrupt_fd(void);

/* Runs it to its end, and puts what it says on both of its streams into `said`. The exit code; above 128 the
 * signal that ended it; 127: it could not be started, and `said` has the reason. It is killed when it takes
 * minutes. */
int dev_process_run(struct dev_argv *words, struct mk_buf *said);

#endif
