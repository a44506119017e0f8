/* SPDX-License-Identifier: Apache-2.0 */
/* A child process with its output in pipes; it does not outlive wr. */
#ifndef WR_CHILD_H
#define WR_CHILD_H

#include <sys/resource.h>

#include "base/buf.h"
#include "base/err.h"

enum { WR_CHILD_KEEPS = 1 << 20 }; /* keeps at least this many bytes from the end of each output */

enum wr_child_event { WR_CHILD_RUNS, WR_CHILD_ENDED, WR_CHILD_INTERRUPTED };

struct wr_child {
    pid_t pid;
    int fds[2]; /* read ends of standard output and standard error */
    struct mk_buf outputs[2];
    void (*on_output)(void *data, mk_str piece); /* receives standard output instead of outputs[0] */
    void *data;
    uint64_t started_us, ended_us;
    bool has_ended, was_cut;
    int status;
    struct rusage usage; /* includes its reaped children */
};

/* Blocks the signals that wr_child_wait() handles. Call it once at startup. */
mk_err wr_child_prepare(void) MK_MUST_USE;
/* Looks up argv[0] in PATH and starts it. Returns -ENOENT if it is not found. Set `on_output` and `data`
 * before the call, or leave them NULL. */
mk_err wr_child_start(struct wr_child *c, char *const *argv) MK_MUST_USE;
/* Waits for the child's exit, the time `until_us` (of mk_clock_us()), or a signal that tells wr to exit. */
enum wr_child_event wr_child_wait(struct wr_child *c, uint64_t until_us);
/* Reads the remaining output, with a time limit: descendants of the child may keep the pipes open. */
void wr_child_drain(struct wr_child *c);
void wr_child_fini(struct wr_child *c);

#endif
