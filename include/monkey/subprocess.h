/* SPDX-License-Identifier: Apache-2.0 */
/* Subprocesses: functions that start and stop other programs. */
#ifndef MONKEY_SUBPROCESS_H
#define MONKEY_SUBPROCESS_H

#include <monkey/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A subprocess of this worker. A small spawner process starts it, so that the worker never forks. The
 * subprocess runs as the worker's user, in its own process group, with only the descriptors in its options,
 * and outside the worker's sandbox; but it cannot gain privileges through exec (setuid bits have no effect).
 * It is killed when the worker or the spawner dies. The plugin must declare the program with
 * mk_config_allow_program() or mk_config_allow_scripts() while the configuration is loaded.
 */
struct mk_subprocess;

/** Options of a subprocess. All of them are copied. */
struct mk_subprocess_options {
    const char *const *argv; /**< argv[0] is a path that contains a slash; ended by NULL */
    const char *const *envp; /**< ended by NULL; argv and envp together at most 120 KB */
    const char *cwd;         /**< NULL: "/" */
    int in, out, err;   /**< standard streams, set to blocking mode for the subprocess (the caller's end of
                             a pipe is unchanged), unless `keeps_nonblocking` is set; -1: none. The caller
                             keeps its descriptors, and closes them after the call */
    uint32_t cpu_s;     /**< maximum CPU time in seconds; 0: no limit */
    uint64_t memory;    /**< maximum address space in bytes; 0: no limit */
    uint32_t processes; /**< maximum number of processes of its user; 0: no limit */
    uint64_t file_size; /**< maximum size in bytes of a file that it writes; 0: no limit */
    bool keeps_nonblocking; /**< does not change the blocking mode of the standard streams, which other
                                processes that share the open file description would notice */
};

/**
 * Starts a subprocess. on_end(ctx, status) is called once: when the subprocess has ended, with the status of
 * waitpid(2), or when it could not be started, with a negative errno value (-EPIPE: its state is unknown,
 * because the spawner died; -EPERM: the plugin has not declared this program with these arguments and
 * variables). on_end is not called if the worker exits: the subprocess is then killed; use it in worker_stop
 * at the latest. Returns NULL if out of memory, if there are too many subprocesses, if the arguments are too
 * long, or if there is no spawner (see the log).
 *
 *     int out[2];
 *     pipe2(out, O_CLOEXEC | O_NONBLOCK);
 *     const char *argv[] = {"/usr/bin/uptime", NULL}, *envp[] = {"PATH=/bin:/usr/bin", NULL};
 *     struct mk_subprocess_options o = {.argv = argv, .envp = envp, .in = -1, .out = out[1], .err = -1};
 *     child = mk_subprocess_start(worker, &o, on_end, ctx);
 *     close(out[1]);
 */
MK_API struct mk_subprocess *mk_subprocess_start_sized(struct mk_worker *worker,
                                                       const struct mk_subprocess_options *options,
                                                       size_t options_size,
                                                       void (*on_end)(void *ctx, int status),
                                                       void *ctx) MK_API_MUST_USE;
static inline MK_API_MUST_USE struct mk_subprocess *
mk_subprocess_start(struct mk_worker *worker, const struct mk_subprocess_options *options,
                    void (*on_end)(void *ctx, int status), void *ctx)
{
    return mk_subprocess_start_sized(worker, options, sizeof *options, on_end, ctx);
}
/**
 * Sends a signal to the process group of the subprocess. Has no effect in on_end; not allowed afterwards.
 * Processes that an exited subprocess leaves in its group continue to run, and can no longer be signaled by
 * this function.
 *
 *     mk_subprocess_signal(subprocess, SIGTERM);
 */
MK_API void mk_subprocess_signal(struct mk_subprocess *subprocess, int signal);
/** Kills the process group; on_end is then never called. NULL is allowed. Has no effect in on_end; not
 * allowed afterwards. */
MK_API void mk_subprocess_kill(struct mk_subprocess *subprocess);

#ifdef __cplusplus
}
#endif

#endif
