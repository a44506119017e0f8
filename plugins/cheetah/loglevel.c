/* SPDX-License-Identifier: Apache-2.0 */
#include "loglevel.h"

#include "worker_query.h"

const char *const cheetah_level_names[] = {
    [MK_LOG_ERROR] = "error",
    [MK_LOG_WARN] = "warn",
    [MK_LOG_INFO] = "info",
    [MK_LOG_DEBUG] = "debug",
};

static bool find_level(mk_str word, enum mk_log_level *level)
{
    for (unsigned i = 0; i < MK_LEN(cheetah_level_names); i++) {
        *level = (enum mk_log_level)i;
        if (mk_str_eq_nocase(word, mk_str_from_c(cheetah_level_names[i])))
            return true;
    }
    return false;
}

static void finish_loglevel(struct cheetah_session *s, const struct cheetah_worker_query *g)
{
    unsigned missing = cheetah_worker_query_n_missing(s, g);
    const char *name = cheetah_level_names[g->level];
    if (missing)
        cheetah_session_finish_response(
            s, CHEETAH_FAILED, "%u of %u workers did not confirm the log level %s", missing, g->n, name);
    else
        cheetah_session_finish_response(s, CHEETAH_OK, "the log level is %s now, until you reload the server",
                                        name);
}

static void change_level(struct cheetah_session *s, enum mk_log_level level)
{
    struct mk_worker *w = cheetah_session_shell(s)->worker;
    cheetah_session_log(s, "changes the log level");
    int e = mk_worker_set_log_level(w, level);
    if (e) {
        cheetah_session_finish_response(s, CHEETAH_FAILED, "cannot reach the master: %s", strerror(-e));
        return;
    }
    struct cheetah_worker_query *g =
        cheetah_worker_query_start(s, CHEETAH_MESSAGE_FACTS, false, finish_loglevel);
    if (!g)
        return;
    g->wants_level = true;
    g->level = level;
}

void cheetah_loglevel_command(struct cheetah_session *s, mk_str args, bool json)
{
    enum mk_log_level level = mk_worker_log_level(cheetah_session_shell(s)->worker);
    mk_str word = mk_str_word(&args);
    (void)json;
    if (!word.len) {
        cheetah_session_write_output(s, mk_str_from_c(cheetah_level_names[level]));
        cheetah_session_finish_response(s, CHEETAH_OK, "%s", "");
    } else if (find_level(word, &level) && !mk_str_word(&args).len) {
        change_level(s, level);
    } else {
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR,
                                        "invalid arguments: expected `loglevel error|warn|info|debug`");
    }
}
