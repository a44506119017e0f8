/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded.h"

#include <errno.h>

#include "protocol.h"

/* A command whose result follows. The session may end before. */
struct recorded {
    struct shell *shell;
    uint64_t token; /* of the session's response */
};

static const struct cheetah_deferred_command recorded_job = {.on_timer = NULL};

static void finish(struct cheetah_session *s, int e, mk_str text)
{
    if (!e)
        cheetah_session_write_output(s, text);
    cheetah_session_finish_response(s,
                                    e == 0         ? CHEETAH_OK
                                    : e == -EINVAL ? CHEETAH_USAGE_ERROR
                                                   : CHEETAH_FAILED,
                                    "%.*s", MK_STR_ARG(e ? text : MK_STR("")));
}

static void on_done(void *ctx, int error, mk_str text)
{
    struct recorded *r = ctx;
    struct cheetah_session *s = cheetah_session_find(r->shell, r->token);
    mk_mem_free(r);
    if (!s)
        return;
    finish(s, error, text);
    cheetah_session_advance(s);
}

static void run(struct cheetah_session *s, const char *command, mk_str args, bool json)
{
    char buf[CHEETAH_LINE_MAX + 64], text[512];
    struct mk_buf words = mk_buf_fixed(buf, sizeof buf), error = mk_buf_fixed(text, sizeof text);
    struct recorded *r = mk_mem_zalloc(1, sizeof *r);
    if (!r) {
        cheetah_session_finish_response(s, CHEETAH_FAILED, "out of memory");
        return;
    }
    if (!cheetah_session_defer_response(s, &recorded_job, 1)) {
        mk_mem_free(r);
        return;
    }
    *r = (struct recorded){cheetah_session_shell(s), cheetah_session_token(s)};
    mk_buf_addf(&words, "%s%s %.*s", command, json ? " --json" : "", MK_STR_ARG(args));
    const struct mk_command_end end = {on_done, r};
    int e = mk_worker_run_command(r->shell->worker, MK_STR("top"), mk_buf_str(&words), &error, &end);
    if (e == -EINPROGRESS)
        return;
    mk_mem_free(r);
    if (e == -ENOENT)
        mk_buf_add(&error, MK_STR("the configuration has no `Load top` in [PLUGINS]"));
    finish(s, e, mk_buf_str(&error));
}

void cheetah_recorded_top(struct cheetah_session *s, mk_str args, bool json)
{
    run(s, "top", args, json);
}

void cheetah_recorded_requests(struct cheetah_session *s, mk_str args, bool json)
{
    run(s, "requests", args, json);
}
