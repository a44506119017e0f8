/* SPDX-License-Identifier: Apache-2.0 */
#include "reload.h"

enum { LOOK_MS = 50, LOOKS_MAX = 30 * 1000 / LOOK_MS, WHY_MAX = 8192 };

struct reload_wait {
    uint64_t before, failed_before; /* numbers of all results and of failures before the request */
    uint64_t awaited;               /* number of expected results, including those of other requests */
    unsigned looks;
};

static void show_reload_error(struct cheetah_session *s)
{
    struct mk_buf error = mk_buf_growing(WHY_MAX);
    struct mk_reloads r;
    mk_worker_reloads(cheetah_session_shell(s)->worker, &r, &error);
    mk_str rest = mk_buf_str(&error);
    while (rest.len) {
        mk_str line = mk_str_cut(&rest, '\n');
        cheetah_session_write_note(s, "%.*s", MK_STR_ARG(line));
    }
    mk_buf_free(&error);
}

/* Returns false if there is no result yet. */
static bool show_reload_result(struct cheetah_session *s, const struct reload_wait *w)
{
    struct mk_reloads r;
    mk_worker_reloads(cheetah_session_shell(s)->worker, &r, NULL);
    uint64_t failed = r.failed - w->failed_before;
    if (r.done + r.failed - w->before < w->awaited)
        return false;
    if (failed == 0) {
        cheetah_session_finish_response(s, CHEETAH_OK, "the new configuration serves");
        return true;
    }
    show_reload_error(s);
    if (failed < w->awaited) /* another session has requested a reload at the same time */
        cheetah_session_finish_response(s, CHEETAH_FAILED, "one of %llu configurations was rejected",
                                        (unsigned long long)w->awaited);
    else
        cheetah_session_finish_response(s, CHEETAH_FAILED,
                                        "the new configuration is invalid: keeping the old one");
    return true;
}

static void check_reload_result(struct cheetah_session *s)
{
    struct reload_wait *w = cheetah_session_state(s);
    if (show_reload_result(s, w))
        return;
    if (++w->looks < LOOKS_MAX)
        cheetah_session_set_timer(s, LOOK_MS);
    else
        cheetah_session_finish_response(s, CHEETAH_FAILED, "no result within %d s: see the error log",
                                        LOOKS_MAX * LOOK_MS / 1000);
}

/* Responds when the worker exits, as it usually does after a successful reload. */
static void respond_on_worker_stop(struct cheetah_session *s)
{
    if (!show_reload_result(s, cheetah_session_state(s)))
        cheetah_session_finish_response(s, CHEETAH_FAILED, "this process exits; see the error log");
}

static const struct cheetah_deferred_command job = {.on_timer = check_reload_result,
                                                    .on_stop = respond_on_worker_stop};

void cheetah_reload_command(struct cheetah_session *s, mk_str args, bool json)
{
    struct mk_worker *worker = cheetah_session_shell(s)->worker;
    struct mk_reloads r;
    struct reload_wait *w = cheetah_session_defer_response(s, &job, sizeof *w);
    (void)args, (void)json;
    if (!w)
        return;
    mk_worker_reloads(worker, &r, NULL);
    *w = (struct reload_wait){
        .before = r.done + r.failed, .failed_before = r.failed, .awaited = r.in_progress ? 2 : 1};
    cheetah_session_log(s, "requests a reload");
    int e = mk_worker_request_reload(worker);
    if (e)
        cheetah_session_finish_response(s, CHEETAH_FAILED, "cannot reach the master: %s", strerror(-e));
    else
        cheetah_session_set_timer(s, LOOK_MS);
}
