/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of a command: compilers, servers. */
#ifndef DUDA_DEV_PROCESS_H
#define DUDA_DEV_PROCESS_H

#include "argv.h"

#include <sys/types.h>

/* A running child process; `out` and `err` are our non-blocking ends of its pipes. */
struct dev_process {
    pid_t pid; /* 0: none */
    int out, err;
    struct mk_buf rest[2]; /* incomplete last lines, for dev_stderr_reader_read_lines() */
};

/* Starts the process. It ignores SIGINT, so that Ctrl+C only reaches us, and the kernel signals it when this
 * process dies. On failure, reports the error and returns false. */
bool dev_process_start(struct dev_process *c, struct dev_argv *args);
/* Like dev_process_start(), but connects standard output to `out`, which the caller still owns, and standard
 * error to ours. */
bool dev_process_start_stdout_to(struct dev_process *c, struct dev_argv *args, int out);
/* Returns the exit status of the process, as in waitpid(2); -1 while it runs. */
int dev_process_try_wait(struct dev_process *c);
/* Sends the signal, waits for the process to exit, and closes the pipes. */
void dev_process_stop(struct dev_process *c, int signal);
void dev_process_close_pipes(struct dev_process *c);

/* Sets a descriptor that becomes readable on Ctrl+C, which ends all waits for processes; -1, the initial
 * value: none. */
void dev_process_set_interrupt_fd(int fd);
int dev_process_interrupt_fd(void);

/* Runs a process, and collects its standard output and standard error in `output`. Kills the process after a
 * few minutes. Returns its exit code; a value above 128 means that a signal killed it, 127 that it could not
 * be started, with the reason in `output`. */
int dev_process_run(struct dev_argv *args, struct mk_buf *output);

/* A process of dev_process_run_all(). */
struct dev_process_job {
    struct dev_argv args;
    struct mk_buf output;
    int code; /* as from dev_process_run() */
};

/* Like dev_process_run() for each of the n processes; as many run at the same time as there are CPUs. */
void dev_process_run_all(struct dev_process_job *jobs, size_t n);

#endif
