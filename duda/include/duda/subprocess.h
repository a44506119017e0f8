/* SPDX-License-Identifier: Apache-2.0 */
/* Subprocesses: handlers start programs, write their input, read their output, and wait for their exit. */
#ifndef DUDA_SUBPROCESS_H
#define DUDA_SUBPROCESS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-subprocess.so: `#define DUDA_USE "duda-subprocess"` before including
 * <duda.h>, and link with `pkg-config --libs duda-subprocess`.
 *
 * A worker never forks. This package gives each worker a small helper process, the spawner, which starts
 * programs for it. A program runs as the worker's user, cannot gain privileges (no setuid programs), has its
 * own process group, and inherits the three standard streams but no other descriptor. The worker's sandbox
 * does not apply to programs: only the permissions of their user restrict what they read and write. No shell
 * is involved unless argv names one, so client input is never parsed as a command; but an argument that
 * begins with `-` may be parsed as an option.
 *
 * A program never outlives its handler: its process group is killed (SIGKILL) when the handler returns or is
 * cancelled, or when its worker dies.
 */

/** Options of a program. Leave unused members zero. All options are copied. argv and envp end with NULL. */
struct duda_subprocess_options {
    const char *const *argv; /**< arguments; argv[0] is the program's path, with a slash */
    const char *const *envp; /**< environment; NULL: `PATH=/usr/local/bin:/usr/bin:/bin`, `LANG=C.UTF-8` */
    const char *cwd;         /**< working directory; NULL: "/" */
    uint32_t timeout_ms;     /**< timeout in milliseconds, after which the program is killed; 0: none */
    uint32_t cpu_s;          /**< CPU time limit in seconds; 0: no limit */
    uint64_t memory;         /**< address space limit in bytes; 0: no limit */
    bool merge_stderr; /**< merges standard error into the output; otherwise its lines go to the error log, up
                            to 16 KB */
};

/**
 * Runs a program in a subprocess: writes `input` to its standard input and closes it, reads up to `max`
 * bytes of its output, and waits for its exit. `*output` lives until the handler returns. `*status` is the
 * exit code, or, as in a shell, 128 plus the number of the signal that killed the program.
 *
 * Returns 0, regardless of the status; -EMSGSIZE: the output exceeded `max`, and the program was killed;
 * -ETIME: the timeout has passed, and the program was killed; -ETIMEDOUT or -ECANCELED: the wait failed, and
 * the program was killed; -ENOENT, -EACCES and other errors of execve(2): the program could not be started;
 * -EINVAL: argv[0] contains no slash; -EAGAIN: no spawner (see the log), or its queue is full; -EPIPE: the
 * spawner died, and the program with it; -EMSGSIZE: argv and envp exceed 120 KB; -EMFILE, -ENOMEM.
 *
 *     const char *const argv[] = {"/usr/bin/sort", "-u", NULL};
 *     const struct duda_subprocess_options sort = {.argv = argv, .timeout_ms = 5000};
 *     mk_str sorted;
 *     int status, e = duda_subprocess_run(d, &sort, text, 1 << 20, &sorted, &status);
 *     return e ? e : status ? 422 : duda_write(d, sorted);
 */
MK_API int duda_subprocess_run_sized(struct duda_ctx *d, const struct duda_subprocess_options *options,
                                     size_t options_size, mk_str input, size_t max, mk_str *output,
                                     int *status) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_subprocess_run(struct duda_ctx *d,
                                                      const struct duda_subprocess_options *options,
                                                      mk_str input, size_t max, mk_str *output, int *status)
{
    return duda_subprocess_run_sized(d, options, sizeof *options, input, max, output, status);
}

/* ---- Streaming ---- */

/** A running program; it belongs to the handler, and ends with it. */
struct duda_subprocess;

/** Starts a program. Returns 0, or an error of duda_subprocess_run(); a missing program file is reported by
 * duda_subprocess_wait(). */
MK_API int duda_subprocess_start_sized(struct duda_ctx *d, const struct duda_subprocess_options *options,
                                       size_t options_size, struct duda_subprocess **out) MK_API_MUST_USE;
static inline MK_API_MUST_USE int duda_subprocess_start(struct duda_ctx *d,
                                                        const struct duda_subprocess_options *options,
                                                        struct duda_subprocess **out)
{
    return duda_subprocess_start_sized(d, options, sizeof *options, out);
}
/**
 * Reads the next bytes of the output, and waits until some arrive. Returns the number of bytes, 0 at the end
 * of the output, or -ETIME, -ETIMEDOUT or -ECANCELED, which every later call repeats.
 *
 *     struct duda_subprocess *p;
 *     char buf[4096];
 *     ssize_t n = 0;
 *     int status, e = duda_subprocess_start(d, &options, &p);
 *     while (!e && (n = duda_subprocess_read(d, p, buf, sizeof buf)) > 0)
 *         e = duda_write(d, mk_str_of(buf, (size_t)n));
 *     e = e ? e : n < 0 ? (int)n : duda_subprocess_wait(d, p, &status);
 */
MK_API ssize_t duda_subprocess_read(struct duda_ctx *d, struct duda_subprocess *subprocess, char *buf,
                                    size_t cap) MK_API_MUST_USE;
/**
 * Writes the whole string to the standard input; waits while the pipe is full. A program that is blocked
 * because its own output is not read accepts no input: read its output in between, or use
 * duda_subprocess_run(). Returns 0; -EPIPE: the program has closed its input; or -ETIME, -ETIMEDOUT or
 * -ECANCELED.
 *
 *     int e = duda_subprocess_write(d, subprocess, text);
 *     duda_subprocess_close_stdin(subprocess); // the program sees the end of its input
 */
MK_API int duda_subprocess_write(struct duda_ctx *d, struct duda_subprocess *subprocess,
                                 mk_str text) MK_API_MUST_USE;
/** Closes the standard input of the program. */
MK_API void duda_subprocess_close_stdin(struct duda_subprocess *subprocess);
/**
 * Sends a signal, such as SIGTERM, to the process group of the program.
 *
 *     duda_subprocess_signal(subprocess, SIGTERM);
 */
MK_API void duda_subprocess_signal(struct duda_subprocess *subprocess, int signal);
/** Closes the input, discards the remaining output, and waits for the program to exit. Returns 0 and sets
 * `*status`; or returns the error that prevented the start, -ETIME, -ETIMEDOUT or -ECANCELED. */
MK_API int duda_subprocess_wait(struct duda_ctx *d, struct duda_subprocess *subprocess,
                                int *status) MK_API_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
