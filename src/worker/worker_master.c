/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker_master.h"

#include <limits.h>
#include <monkey/sized.h>

#include "worker/control.h"

enum { ASK_AGAIN_MS = 60000, CONFIRM_MAX_S = 86400, BY_MAX = 95 };

static mk_err send_to_master(struct mk_worker *w, struct mk_control_message m)
{
    m.fd = -1;
    mk_err e = w->master_fd < 0 ? -ENOTCONN : mk_control_send(w->master_fd, &m);
    return e == -EPIPE ? -ENOTCONN : e;
}

/* ---- Plugin API ---- */

int mk_worker_request_reload(struct mk_worker *w)
{
    return send_to_master(w, (struct mk_control_message){.kind = MK_CONTROL_RELOAD});
}

int mk_worker_request_config_sized(struct mk_worker *w, const struct mk_config_request *request,
                                   size_t request_size)
{
    static const enum mk_control_kind kinds[] = {[MK_CONFIG_RELOAD] = MK_CONTROL_RELOAD_BY,
                                                 [MK_CONFIG_CONFIRM] = MK_CONTROL_CONFIRM,
                                                 [MK_CONFIG_ROLLBACK] = MK_CONTROL_ROLLBACK};
    struct mk_config_request full;
    request = mk_sized_in(&full, sizeof full, request, request_size);
    if ((unsigned)request->action >= MK_LEN(kinds) || request->confirm_s > CONFIRM_MAX_S ||
        request->number > INT_MAX || request->by.len > BY_MAX)
        return -EINVAL;
    uint32_t number = request->action == MK_CONFIG_RELOAD ? request->confirm_s : request->number;
    return send_to_master(w, (struct mk_control_message){.kind = kinds[request->action],
                                                         .number = (int)number,
                                                         .id = request->id,
                                                         .text = request->by});
}

int mk_worker_config_result(const struct mk_worker *w, uint64_t id, struct mk_buf *text)
{
    bool ok;
    const struct mk_reload_stats *h = w->scoreboard.reload_stats;
    if (!h || !mk_scoreboard_find_result(h, id, &ok, text))
        return -EAGAIN;
    return ok ? 0 : -ECANCELED;
}

int mk_worker_request_replacement(struct mk_worker *w)
{
    return send_to_master(w, (struct mk_control_message){.kind = MK_CONTROL_REPLACE});
}

int mk_worker_set_log_level(struct mk_worker *w, enum mk_log_level level)
{
    if ((unsigned)level >= MK_LOG_LEVEL_COUNT)
        return -EINVAL;
    mk_err e =
        send_to_master(w, (struct mk_control_message){.kind = MK_CONTROL_LOG_LEVEL, .number = (int)level});
    if (e != -ENOTCONN || !w->web.log)
        return e;
    w->web.log->level = level;
    return 0;
}

enum mk_log_level mk_worker_log_level(const struct mk_worker *w)
{
    return w->web.log ? w->web.log->level : MK_LOG_ERROR;
}

/* ---- For the worker ---- */

void mk_worker_request_rotation(struct mk_worker *w, struct mk_logwriter *log)
{
    uint64_t now = w->loop.now_ms;
    bool has_asked = log->rotation_requested_ms && now - log->rotation_requested_ms < ASK_AGAIN_MS;
    if (has_asked || !mk_logfile_is_full(log->file))
        return;
    if (w->on_full) {
        log->rotation_requested_ms = w->on_full(w, log->file) ? now : 0;
        return;
    }
    mk_err e =
        send_to_master(w, (struct mk_control_message){.kind = MK_CONTROL_ROTATE, .text = log->file->where});
    log->rotation_requested_ms = e ? 0 : now;
}
