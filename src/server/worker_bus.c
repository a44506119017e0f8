/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker_bus.h"

#include "base/mem.h"
#include "server/control.h"
#include "setup/plugins.h"

enum { ASK_AGAIN_MS = 60000 };

/* A message to ourselves. */
struct mk_note {
    struct mk_note *next;
    const struct mk_plugin *plugin;
    size_t len;
    char text[];
};

static mk_err tell_master(struct mk_worker *w, struct mk_control_message m)
{
    m.fd = -1;
    mk_err e = w->bus.master_fd < 0 ? -ENOTCONN : mk_control_send(w->bus.master_fd, &m);
    return e == -EPIPE ? -ENOTCONN : e;
}

void mk_worker_deliver(struct mk_worker *w, mk_str plugin, mk_str message)
{
    for (size_t i = 0; i < w->n_started; i++) {
        const struct mk_loaded *l = mk_plugins_at(w->generation, i);
        if (l->object.plugin->on_message && mk_str_eq(mk_str_from_c(l->object.plugin->name), plugin))
            l->object.plugin->on_message(w, message, l->data);
    }
}

/* ---- Messages to ourselves ---- */

static struct mk_note *detach_notes(struct mk_bus *b)
{
    struct mk_note *first = b->notes;
    b->notes = b->last_note = NULL;
    return first;
}

static void read_notes(struct mk_task *t)
{
    struct mk_worker *w = MK_CONTAINER(t, struct mk_worker, bus.task);
    struct mk_note *note = detach_notes(&w->bus); /* messages sent from now on wait for the next turn */
    while (note) {
        struct mk_note *next = note->next;
        if (!w->ending)
            mk_worker_deliver(w, mk_str_from_c(note->plugin->name), mk_str_of(note->text, note->len));
        mk_mem_free(note);
        note = next;
    }
}

static mk_err write_note(struct mk_worker *w, const struct mk_plugin *plugin, mk_str message)
{
    struct mk_bus *b = &w->bus;
    struct mk_note *note = w->ending ? NULL : mk_mem_alloc(sizeof *note + message.len);
    if (!note)
        return w->ending ? 0 : -ENOMEM;
    *note = (struct mk_note){.plugin = plugin, .len = message.len};
    if (message.len)
        memcpy(note->text, message.p, message.len);
    if (b->last_note)
        b->last_note->next = note;
    else
        mk_loop_defer(&w->loop, &b->task);
    if (!b->notes)
        b->notes = note;
    b->last_note = note;
    return 0;
}

/* ---- What plugins call ---- */

int mk_worker_send(struct mk_worker *w, const struct mk_plugin *plugin, int to, mk_str message)
{
    if (message.len > MK_CONTROL_TEXT)
        return -EMSGSIZE;
    if (to != MK_TO_ALL && (to < 0 || (unsigned)to >= w->count))
        return -EINVAL;
    mk_err e = tell_master(w, (struct mk_control_message){.kind = MK_CONTROL_MESSAGE,
                                                          .number = to,
                                                          .name = mk_str_from_c(plugin->name),
                                                          .text = message});
    if (e != -ENOTCONN || (to != MK_TO_ALL && (unsigned)to != w->index))
        return e;
    mk_err kept = write_note(w, plugin, message);
    return kept ? kept : e;
}

int mk_worker_ask_reload(struct mk_worker *w)
{
    return tell_master(w, (struct mk_control_message){.kind = MK_CONTROL_RELOAD});
}

int mk_worker_ask_log_level(struct mk_worker *w, enum mk_log_level level)
{
    if ((unsigned)level >= MK_LOG_LEVELS)
        return -EINVAL;
    mk_err e =
        tell_master(w, (struct mk_control_message){.kind = MK_CONTROL_LOG_LEVEL, .number = (int)level});
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

void mk_worker_watch_log(struct mk_worker *w, struct mk_logwriter *log)
{
    uint64_t now = w->loop.now_ms;
    bool has_asked = log->asked_ms && now - log->asked_ms < ASK_AGAIN_MS;
    if (has_asked || !mk_logfile_is_full(log->file))
        return;
    mk_err e =
        tell_master(w, (struct mk_control_message){.kind = MK_CONTROL_ROTATE, .text = log->file->where});
    log->asked_ms = e ? 0 : now;
}

void mk_worker_bus_init(struct mk_worker *w, int master_fd)
{
    w->bus = (struct mk_bus){.master_fd = master_fd, .task = {.run = read_notes}};
}

void mk_worker_bus_cut(struct mk_worker *w)
{
    w->bus.master_fd = -1;
}

void mk_worker_bus_fini(struct mk_worker *w)
{
    struct mk_note *note = detach_notes(&w->bus);
    while (note) {
        struct mk_note *next = note->next;
        mk_mem_free(note);
        note = next;
    }
}
