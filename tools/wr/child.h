/* SPDX-License-Identifier: Apache-2.0 */
/* A program that wr runs: its output comes through pipes, and it does not outlive wr. */
#ifndef WR_CHILD_H
#define WR_CHILD_H

#include <sys/resource.h>

#include "base/buf.h"
#include "base/err.h"

enum { WR_CHILD_KEEPS = 1 << 20 }; /* of the end of each output, at least */

enum wr_child_event { WR_CHILD_RUNS, WR_CHILD_ENDED, WR_CHILD_INTERRUPTED };

struct wr_child {
    pid_t pid;
    int fds[2]; /* its standard output and error */
    struct mk_buf outputs[2];
    void (*on_output)(void *data, mk_str piece); /* takes its standard output in place of outputs[0] */
    void *data;
    uint64_t started_us, ended_us;
    bool has_ended, was_cut;
    int status;
    struct rusage usage; /* with what it waited for */
};

/* Blocks the signals that wr_child_wait() hears of. Once, at the start. */
mk_err wr_child_prepare(void) MK_MUST_USE;
/* By PATH. -ENOENT: there is no such program. `on_output` and `data` are set before or NULL. */
mk_err wr_child_start(struct wr_child *c, char *const *argv) MK_MUST_USE;
/* Waits until the child ends, until that time (of mk_clock_us()), or until a signal asks wr to end. */
enum wr_child_event wr_child_wait(struct wr_child *c, uint64_t until_us);
/* Reads what it wrote last. Not for long: children of its own may hold the pipes open for ever. */
void wr_child_drain(struct wr_child *c);
/* Ends it and its process group, if it runs. */
void wr_child_stop(struct wr_child *c);
void wr_child_fini(struct wr_child *c);
/* Did a signal ask wr to end? */
bool wr_child_was_interrupted(void);
/* The file that argv[0] means, with a NUL behind it; false when there is none. */
bool wr_child_find_program(const char *name, struct mk_buf *path) MK_MUST_USE;

#endif
