/* SPDX-License-Identifier: Apache-2.0 */
/* Starting other programs. */
#ifndef MONKEY_SUBPROCESS_H
#define MONKEY_SUBPROCESS_H

#include <monkey/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Another program, started for this worker by a small process of its own, so that the worker never forks. It
 * runs as the user of the worker, in a process group of its own, with no descriptors but those given here,
 * outside of the worker's sandbox; but no exec gives it more privileges (no setuid programs). It is killed
 * when the worker, or that process, dies. A configuration must have said mk_config_enable_subprocesses().
 */
struct mk_subprocess;

/** What to start, and how. All of it is copied. */
struct mk_subprocess_options {
    const char *const *argv; /**< argv[0] is the file, with a slash in it; ended by NULL */
    const char *const *envp; /**< ended by NULL; all of argv and envp together at most 120 KB */
    const char *cwd;         /**< NULL: "/" */
    int in, out, err; /**< its standard streams, which are made to block for it (a pipe's own end stays as it
                          is); -1: nowhere. The caller keeps its own descriptors and closes them after the call */
    uint32_t cpu_s;   /**< seconds of processor time; 0: no limit */
    uint64_t memory;  /**< bytes of address space; 0: no limit */
    uint32_t processes; /**< of its user; 0: no limit */
    uint64_t file_size; /**< of a file that it writes; 0: no limit */
};

/**
 * Starts the program. on_end(ctx, status) is called once, when it has ended, with the status of waitpid(2),
 * or when it could not be started: then `status` is a negated errno value (-EPIPE: its fate is unknown,
 * because the process that started it died). Not called when the worker ends: the program is then killed, and
 * worker_stop is the last function that may use it. NULL: no memory, too many programs at once, arguments too
 * long, or no spawner (see the log).
 *
 *     int out[2];
 *     pipe2(out, O_CLOEXEC | O_NONBLOCK);
 *     const char *argv[] = {"/usr/bin/uptime", NULL}, *envp[] = {"PATH=/bin:/usr/bin", NULL};
 *     struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = out[1], .err = -1};
 *     child = mk_subprocess_start(worker, &o, on_end, ctx);
 *     close(out[1]);
 */
MK_API struct mk_subprocess *mk_subprocess_start(struct mk_worker *w, const struct mk_subprocess_options *o,
                                                 void (*on_end)(void *ctx, int status),
                                                 void *ctx) MK_API_MUST_USE;
/** Signals its whole process group; harmless in on_end, not after it. Processes that an exited program leaves
 * behind in its group continue to run and are out of reach. */
MK_API void mk_subprocess_signal(struct mk_subprocess *c, int signal);
/** Kills the group, and never calls on_end. NULL is fine; harmless in on_end, not after it. */
MK_API void mk_subprocess_kill(struct mk_subprocess *c);

#ifdef __cplusplus
}
#endif

#endif
