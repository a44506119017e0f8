/* SPDX-License-Identifier: Apache-2.0 */
#include "levels.h"

#include "gather.h"

const char *const shell_level_names[MK_LOG_LEVELS] = {
    [MK_LOG_ERROR] = "error",
    [MK_LOG_WARN] = "warn",
    [MK_LOG_INFO] = "info",
    [MK_LOG_DEBUG] = "debug",
};

static bool find(mk_str word, enum mk_log_level *level)
{
    for (unsigned i = 0; i < MK_LOG_LEVELS; i++) {
        *level = (enum mk_log_level)i;
        if (mk_str_eq_nocase(word, mk_str_from_c(shell_level_names[i])))
            return true;
    }
    return false;
}

static void finish(struct shell_session *s, const struct shell_gathering *g)
{
    unsigned missing = shell_gather_missing(s, g);
    const char *name = shell_level_names[g->level];
    if (missing)
        shell_session_answer(s, SHELL_FAILED, "%u of %u workers did not say that their log level is %s now",
                             missing, g->n, name);
    else
        shell_session_answer(s, SHELL_DONE, "the log level is %s now, until a configuration is loaded", name);
}

static void change(struct shell_session *s, enum mk_log_level level)
{
    struct mk_worker *w = shell_session_shell(s)->worker;
    shell_session_log(s, "changes the log level");
    int e = mk_worker_ask_log_level(w, level);
    if (e) {
        shell_session_answer(s, SHELL_FAILED, "the master cannot be asked: %s", strerror(-e));
        return;
    }
    struct shell_gathering *g = shell_gather(s, SHELL_ASK_FACTS, false, finish);
    if (!g)
        return;
    g->wants_level = true;
    g->level = level;
}

void shell_level(struct shell_session *s, mk_str args, bool json)
{
    enum mk_log_level level = mk_worker_log_level(shell_session_shell(s)->worker);
    mk_str word = mk_str_word(&args);
    (void)json;
    if (!word.len) {
        shell_session_say(s, mk_str_from_c(shell_level_names[level]));
        shell_session_answer(s, SHELL_DONE, "%s", "");
    } else if (find(word, &level) && !mk_str_word(&args).len) {
        change(s, level);
    } else {
        shell_session_answer(s, SHELL_MISUSED, "expected `loglevel` and error, warn, info or debug");
    }
}
