/* SPDX-License-Identifier: Apache-2.0 */
/* Other programs: started, fed, read and waited for by handlers. */
#ifndef DUDA_SUBPROCESS_H
#define DUDA_SUBPROCESS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-subprocess.so: `#define DUDA_USE "duda-subprocess",` ahead of <duda.h>, and
 * link with `pkg-config --libs duda-subprocess`.
 *
 * A worker never forks. With this package each worker gets a small process beside it, the spawner, which
 * starts programs for it: as the user of the worker, with no privileges to be gained (no setuid programs), in
 * a process group of their own, with the three streams and no other descriptor. The sandbox of the worker
 * does not hold for them: what they may read and write is decided by their user alone. There is no shell
 * unless argv names one, so nothing that a client says is read as a command; but an argument that begins with
 * `-` may be read as an option.
 *
 * A program ends with its handler at the latest: its group is killed (SIGKILL) when the handler returns, is
 * cancelled, or its worker dies.
 */

/** What to start. Members that are not set are 0. All of it is copied. */
struct duda_subprocess_options {
    const char *const *argv; /**< ended by NULL; argv[0] is the file, with a slash in it */
    const char *const *envp; /**< ended by NULL; NULL: `PATH=/usr/local/bin:/usr/bin:/bin`, `LANG=C.UTF-8` */
    const char *cwd;         /**< its folder; NULL: "/" */
    uint32_t ms;             /**< it is killed after this time; 0: it may run as long as the handler */
    uint32_t cpu_s;          /**< seconds of processor time; 0: no limit */
    uint64_t memory;         /**< bytes of address space; 0: no limit */
    bool joins_errors; /**< standard error goes where the output goes; else it becomes lines of the error
                          log, at most 16 KB */
};

/**
 * Runs a program: writes `input` to its standard input and ends that, reads its output up to `max` bytes, and
 * waits for its end. `*output` lives until the handler returns. `*status` is its exit code, or 128 and the
 * number of the signal that killed it, as in a shell.
 *
 * 0, whatever the status; -EFBIG: it wrote more, and was killed; -ETIMEDOUT: the time of the options, or the
 * deadline, is over, and it was killed; -ECANCELED; -ENOENT, -EACCES and others of execve(2): it could not be
 * started; -EINVAL: argv[0] has no slash; -EAGAIN: there is no spawner (see the log), or too many programs
 * wait for it; -EPIPE: the spawner died, and the program with it; -E2BIG: argv and envp have more than 120
 * KB; -EMFILE, -ENOMEM.
 *
 *     const char *const argv[] = {"/usr/bin/sort", "-u", NULL};
 *     const struct duda_subprocess_options sort = {.argv = argv, .ms = 5000};
 *     mk_str sorted;
 *     int status, e = duda_subprocess_run(d, &sort, text, 1 << 20, &sorted, &status);
 *     return e ? e : status ? 422 : duda_write(d, sorted);
 */
MK_API int duda_subprocess_run(struct duda_ctx *d, const struct duda_subprocess_options *o, mk_str input,
                               size_t max, mk_str *output, int *status) MK_API_MUST_USE;

/* ---- Piece by piece ---- */

/** A program that was started; it belongs to the handler, and ends with it. */
struct duda_subprocess;

/** Starts it. 0, or an error of duda_subprocess_run(); that there is no such file is said by duda_subprocess_wait(). */
MK_API int duda_subprocess_start(struct duda_ctx *d, const struct duda_subprocess_options *o,
                                 struct duda_subprocess **out) MK_API_MUST_USE;
/** The next piece of its output, waiting until there is some; 0: it is over. -ETIMEDOUT or -ECANCELED, from
 * then on always. */
MK_API ssize_t duda_subprocess_read(struct duda_ctx *d, struct duda_subprocess *c, char *room,
                                    size_t cap) MK_API_MUST_USE;
/** Writes all of the text to its standard input, waiting until it takes it. A program that waits itself,
 * because its output is not read, takes no more: read in between, or use duda_subprocess_run(). 0; -EPIPE: it
 * reads no more; -ETIMEDOUT or -ECANCELED. */
MK_API int duda_subprocess_write(struct duda_ctx *d, struct duda_subprocess *c, mk_str text) MK_API_MUST_USE;
/** Its standard input ends: it has got everything. */
MK_API void duda_subprocess_close_stdin(struct duda_subprocess *c);
/** A signal for its process group, such as SIGTERM. */
MK_API void duda_subprocess_signal(struct duda_subprocess *c, int signal);
/** Ends its input, throws away what it still writes, and waits for its end. 0 and `*status`; why it could not
 * be started; -ETIMEDOUT or -ECANCELED. */
MK_API int duda_subprocess_wait(struct duda_ctx *d, struct duda_subprocess *c, int *status) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
