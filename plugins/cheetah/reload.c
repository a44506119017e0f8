/* SPDX-License-Identifier: Apache-2.0 */
#include "reload.h"

enum { LOOK_MS = 50, LOOKS_MAX = 30 * 1000 / LOOK_MS, WHY_MAX = 8192 };

struct waiting {
    uint64_t before, failed_before; /* results that were there when it was asked for */
    uint64_t awaited;               /* of them are not ours, and ours */
    unsigned looks;
};

static void tell_why(struct shell_session *s)
{
    struct mk_buf why = mk_buf_growing(WHY_MAX);
    struct mk_reloads r;
    mk_worker_reloads(shell_session_shell(s)->worker, &r, &why);
    mk_str rest = mk_buf_str(&why);
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        shell_session_remark(s, "%.*s", MK_STR_ARG(line));
    }
    mk_buf_free(&why);
}

/* False: nothing became of it yet. */
static bool tell_result(struct shell_session *s, const struct waiting *w)
{
    struct mk_reloads r;
    mk_worker_reloads(shell_session_shell(s)->worker, &r, NULL);
    uint64_t failed = r.failed - w->failed_before;
    if (r.done + r.failed - w->before < w->awaited)
        return false;
    if (failed == 0) {
        shell_session_answer(s, SHELL_DONE, "the new configuration serves");
        return true;
    }
    tell_why(s);
    if (failed < w->awaited) /* somebody else asked at the same time */
        shell_session_answer(s, SHELL_FAILED, "one of %llu configurations was not taken",
                             (unsigned long long)w->awaited);
    else
        shell_session_answer(s, SHELL_FAILED, "the new configuration is not taken: the old one stays");
    return true;
}

static void on_time(struct shell_session *s)
{
    struct waiting *w = shell_session_state(s);
    if (tell_result(s, w))
        return;
    if (++w->looks < LOOKS_MAX)
        shell_session_set_time(s, LOOK_MS);
    else
        shell_session_answer(s, SHELL_FAILED, "nothing became of it within %d s: look into the error log",
                             LOOKS_MAX * LOOK_MS / 1000);
}

/* The usual end of a worker whose successor serves. */
static void on_stop(struct shell_session *s)
{
    if (!tell_result(s, shell_session_state(s)))
        shell_session_answer(s, SHELL_FAILED, "the process that was asked ends; the error log says more");
}

static const struct shell_job job = {.on_time = on_time, .on_stop = on_stop};

void shell_reload(struct shell_session *s, mk_str args, bool json)
{
    struct mk_worker *worker = shell_session_shell(s)->worker;
    struct mk_reloads r;
    struct waiting *w = shell_session_wait(s, &job, sizeof *w);
    (void)args, (void)json;
    if (!w)
        return;
    mk_worker_reloads(worker, &r, NULL);
    *w = (struct waiting){
        .before = r.done + r.failed, .failed_before = r.failed, .awaited = r.under_way ? 2 : 1};
    shell_session_log(s, "asks for a reload");
    int e = mk_worker_ask_reload(worker);
    if (e)
        shell_session_answer(s, SHELL_FAILED, "the master cannot be asked: %s", strerror(-e));
    else
        shell_session_set_time(s, LOOK_MS);
}
