/* SPDX-License-Identifier: Apache-2.0 */
#include "reload.h"

#include <errno.h>

enum { LOOK_MS = 50, TIMEOUT_S = 30, DAY_S = 24 * 3600, TEXT_MAX = 2048, NUMBER_MAX = 99999999 };

struct reload_wait {
    enum mk_config_action action;
    uint32_t confirm_s;
    uint64_t id; /* of the request */
    uint32_t timeout_s;
    uint64_t waited_ms;
};

static void show_success(struct cheetah_session *s, const struct reload_wait *w, mk_str text)
{
    if (w->confirm_s)
        cheetah_session_finish_response(
            s, CHEETAH_OK, "%.*s; the server returns to the previous one in %u s unless you `confirm` it",
            MK_STR_ARG(text), w->confirm_s);
    else
        cheetah_session_finish_response(s, CHEETAH_OK, "%.*s", MK_STR_ARG(text));
}

static void show_failure(struct cheetah_session *s, const struct reload_wait *w, mk_str error)
{
    if (w->action == MK_CONFIG_CONFIRM) {
        cheetah_session_finish_response(s, CHEETAH_FAILED, "%.*s", MK_STR_ARG(error));
        return;
    }
    while (error.len) {
        mk_str line = mk_str_cut(&error, '\n');
        cheetah_session_write_note(s, "%.*s", MK_STR_ARG(line));
    }
    cheetah_session_finish_response(s, CHEETAH_FAILED,
                                    w->action == MK_CONFIG_ROLLBACK
                                        ? "the earlier configuration does not serve: keeping the current one"
                                        : "the new configuration is invalid: keeping the old one");
}

/* Returns false if there is no result yet. */
static bool show_result(struct cheetah_session *s, const struct reload_wait *w)
{
    char buf[TEXT_MAX];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    int e = mk_worker_config_result(cheetah_session_shell(s)->worker, w->id, &text);
    if (e == 0)
        show_success(s, w, mk_buf_str(&text));
    else if (e != -EAGAIN)
        show_failure(s, w, mk_buf_str(&text));
    return e != -EAGAIN;
}

static void check_result(struct cheetah_session *s)
{
    struct reload_wait *w = cheetah_session_state(s);
    if (show_result(s, w))
        return;
    w->waited_ms += LOOK_MS;
    if (w->waited_ms < (uint64_t)w->timeout_s * 1000)
        cheetah_session_set_timer(s, LOOK_MS);
    else
        cheetah_session_finish_response(s, CHEETAH_FAILED, "no result within %u s: see the error log",
                                        w->timeout_s);
}

/* The session keeps a draining worker alive, so the worker exits before the result only if it is stopped or
 * DrainTimeout has expired. */
static void respond_on_worker_stop(struct cheetah_session *s)
{
    if (!show_result(s, cheetah_session_state(s)))
        cheetah_session_finish_response(s, CHEETAH_FAILED, "this process exits; see the error log");
}

static const struct cheetah_deferred_command job = {.on_timer = check_result,
                                                    .on_stop = respond_on_worker_stop};

static void send_config_request(struct cheetah_session *s, struct mk_config_request request,
                                uint32_t timeout_s)
{
    char name[64];
    struct mk_worker *worker = cheetah_session_shell(s)->worker;
    struct reload_wait *w = cheetah_session_defer_response(s, &job, sizeof *w);
    if (!w)
        return;
    request.id = cheetah_session_token(s);
    *w = (struct reload_wait){
        .action = request.action, .confirm_s = request.confirm_s, .id = request.id, .timeout_s = timeout_s};
    cheetah_session_describe_client(s, name, sizeof name);
    request.by = mk_str_from_c(name);
    int e = mk_worker_request_config(worker, &request);
    if (e) {
        cheetah_session_finish_response(s, CHEETAH_FAILED, "cannot reach the master: %s", strerror(-e));
        return;
    }
    cheetah_session_hold_worker(s);
    cheetah_session_set_timer(s, LOOK_MS);
}

/* ---- Arguments ---- */

bool cheetah_reload_parse_time(mk_str text, uint32_t *seconds)
{
    uint64_t n, factor = 1;
    if (mk_str_ends(text, MK_STR("m")))
        factor = 60;
    else if (mk_str_ends(text, MK_STR("h")))
        factor = 3600;
    if (factor > 1 || mk_str_ends(text, MK_STR("s")))
        text.len--;
    if (!mk_num_parse(text, &n) || n < 1 || n > DAY_S || n * factor > DAY_S)
        return false;
    *seconds = (uint32_t)(n * factor);
    return true;
}

/* Parses `--timeout TIME` and, unless `confirm_s` is NULL, `--confirm TIME`, and removes them from the front. */
static bool parse_options(mk_str *args, uint32_t *timeout_s, uint32_t *confirm_s)
{
    while (mk_str_starts(*args, MK_STR("--"))) {
        mk_str option = mk_str_word(args);
        uint32_t *seconds = mk_str_eq(option, MK_STR("--timeout"))                ? timeout_s
                            : confirm_s && mk_str_eq(option, MK_STR("--confirm")) ? confirm_s
                                                                                  : NULL;
        if (!seconds || !cheetah_reload_parse_time(mk_str_word(args), seconds))
            return false;
        *args = mk_str_trim(*args);
    }
    return true;
}

void cheetah_reload_command(struct cheetah_session *s, mk_str args, bool json)
{
    struct mk_config_request request = {.action = MK_CONFIG_RELOAD};
    uint32_t timeout_s = TIMEOUT_S;
    (void)json;
    if (parse_options(&args, &timeout_s, &request.confirm_s) && !args.len)
        send_config_request(s, request, timeout_s);
    else
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR,
                                        "invalid arguments: expected `reload [--confirm TIME] [--timeout "
                                        "TIME]`, with a TIME such as 60s or 10m");
}

void cheetah_confirm_command(struct cheetah_session *s, mk_str args, bool json)
{
    struct mk_reloads r;
    (void)args, (void)json;
    mk_worker_reloads(cheetah_session_shell(s)->worker, &r, NULL);
    if (r.confirm_at)
        send_config_request(s, (struct mk_config_request){.action = MK_CONFIG_CONFIRM}, TIMEOUT_S);
    else
        cheetah_session_finish_response(s, CHEETAH_FAILED, "no configuration waits for its confirmation");
}

void cheetah_rollback_command(struct cheetah_session *s, mk_str args, bool json)
{
    struct mk_config_request request = {.action = MK_CONFIG_ROLLBACK};
    uint32_t timeout_s = TIMEOUT_S;
    uint64_t n = 0;
    (void)json;
    bool ok = parse_options(&args, &timeout_s, NULL) &&
              (!args.len || (mk_num_parse(args, &n) && n > 0 && n <= NUMBER_MAX));
    request.number = (uint32_t)n;
    if (ok)
        send_config_request(s, request, timeout_s);
    else
        cheetah_session_finish_response(s, CHEETAH_USAGE_ERROR,
                                        "invalid arguments: expected `rollback [--timeout TIME] [NUMBER]`, "
                                        "with a NUMBER from `monkey configurations`");
}
