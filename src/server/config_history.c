/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_history.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/config_store.h"
#include "setup/plugin_object.h"

enum { RETRY_MS = 60 * 1000, ERROR_MAX = 160 };

#define BY_TIMER "the confirmation timeout"

/* A reload that is requested or in progress. */
struct load {
    struct mk_reload_order order;
    struct mk_config_texts *texts; /* a reference; NULL: the files, which a rollback never loads */
};

struct mk_config_history {
    const struct mk_config_source *files;
    struct mk_reload_stats *(*stats)(void *ctx);
    void (*reload)(void *ctx);
    void *ctx;
    struct mk_loop *loop;
    struct mk_log *log;
    struct mk_timer timer; /* ends the time for the confirmation */

    struct mk_config_texts *serving; /* NULL: unknown, because memory was short */
    struct mk_config_entry entry;    /* of the serving configuration; number 0: not in the state folder */
    struct mk_config_texts
        *confirmed; /* returns unless `serving` is confirmed; NULL: no confirmation is due */
    bool is_pinned; /* the files differ from `serving`: no administrator has requested them
                     * since a rollback */

    bool is_overdue;    /* the time for the confirmation has ended */
    bool lacks_confirm; /* the serving configuration has no plugin that receives `monkey confirm` */

    struct load next, under_way;
    bool has_next, is_loading;
    bool is_recording; /* under_way.texts are being read from files */
    char error[ERROR_MAX];
};

/* ---- Lifetime ---- */

static void on_confirm_timeout(struct mk_timer *t);

struct mk_config_history *mk_config_history_new(const struct mk_config_source *files,
                                                struct mk_reload_stats *(*stats)(void *ctx),
                                                void (*reload)(void *ctx), void *ctx)
{
    struct mk_config_history *h = files->path ? mk_mem_zalloc(1, sizeof *h) : NULL;
    if (!h)
        return NULL;
    h->files = files;
    h->stats = stats;
    h->reload = reload;
    h->ctx = ctx;
    mk_timer_init(&h->timer, on_confirm_timeout);
    snprintf(h->under_way.order.by, sizeof h->under_way.order.by, "start");
    return h;
}

static void clear_load(struct load *l)
{
    mk_config_texts_unref(l->texts);
    l->texts = NULL;
}

void mk_config_history_free(struct mk_config_history *h)
{
    if (!h)
        return;
    clear_load(&h->next);
    clear_load(&h->under_way);
    mk_config_texts_unref(h->serving);
    mk_config_texts_unref(h->confirmed);
    mk_mem_free(h);
}

void mk_config_history_start(struct mk_config_history *h, struct mk_loop *loop, struct mk_log *log)
{
    if (!h)
        return;
    h->loop = loop;
    h->log = log;
}

/* ---- The state folder ---- */

/* A full or read-only disk must not prevent a reload. */
static void warn_not_kept(struct mk_config_history *h, const char *error)
{
    mk_log_warn(h->log, "cannot keep the configuration in the state folder: %s", error);
}

static void store_serving(struct mk_config_history *h)
{
    const char *error;
    h->entry = (struct mk_config_entry){.source = h->serving->number,
                                        .time = mk_clock_unix(),
                                        .outcome = h->confirmed ? MK_OUTCOME_UNCONFIRMED : MK_OUTCOME_SERVES};
    snprintf(h->entry.by, sizeof h->entry.by, "%s", h->under_way.order.by);
    if (mk_config_store_add(h->files->path, &h->entry, h->serving, &error)) {
        h->entry.number = 0;
        warn_not_kept(h, error);
    }
    if (!h->serving->number)
        h->serving->number = h->entry.number;
}

static void store_outcome(struct mk_config_history *h, enum mk_config_outcome outcome)
{
    const char *error;
    h->entry.outcome = outcome;
    if (h->entry.number && mk_config_store_update(h->files->path, &h->entry, &error))
        warn_not_kept(h, error);
}

/* Finds the newest kept configuration with the texts that serve. NULL: there is none. */
static const struct mk_config_entry *find_serving(const struct mk_config_history *h,
                                                  const struct mk_config_list *list)
{
    bool equal = false;
    const struct mk_config_entry *e = list->at;
    for (; h->serving && e < list->at + list->n; e++) {
        const char *error;
        struct mk_config_entry entry;
        struct mk_config_texts *texts = mk_config_texts_new();
        equal = texts && !mk_config_store_read(h->files->path, e->number, &entry, texts, &error) &&
                mk_config_texts_equal(texts, h->serving);
        mk_config_texts_unref(texts);
        if (equal)
            break;
    }
    return equal ? e : NULL;
}

/* Warns if the previous master ended before its configuration was confirmed, or has rolled back what the files
 * contain. */
static void warn_of_rejected_start(struct mk_config_history *h)
{
    struct mk_config_list list;
    const char *error;
    if (mk_config_store_list(h->files->path, &list, &error) || !list.n)
        return;
    const struct mk_config_entry *serving = find_serving(h, &list);
    if (serving && serving->outcome == MK_OUTCOME_ROLLED_BACK)
        mk_log_warn(
            h->log,
            "the files contain configuration %u, which was rolled back before the server was restarted: "
            "it serves again, and `monkey rollback` returns to the configuration before",
            serving->number);
    if (list.at[0].outcome != MK_OUTCOME_UNCONFIRMED)
        return;
    mk_log_warn(
        h->log,
        "configuration %u was not confirmed before the server was restarted: the server has read the files, "
        "and `monkey rollback` returns to the configuration before",
        list.at[0].number);
}

/* ---- Orders ---- */

/* NULL: h->error tells why. */
static struct mk_config_texts *load_kept_texts(struct mk_config_history *h, unsigned number)
{
    struct mk_config_entry entry;
    const char *error;
    struct mk_config_texts *texts = mk_config_texts_new();
    mk_err e = texts ? mk_config_store_read(h->files->path, number, &entry, texts, &error) : -ENOMEM;
    if (!e) {
        texts->number = entry.source ? entry.source : number;
        return texts;
    }
    mk_config_texts_unref(texts);
    if (e == -ENOENT)
        snprintf(h->error, sizeof h->error, "no configuration %u is kept: see `monkey configurations`",
                 number);
    else
        snprintf(h->error, sizeof h->error, "configuration %u cannot be read: %s", number,
                 e == -ENOMEM ? "out of memory" : error);
    return NULL;
}

/* May `monkey rollback` without a number return to the kept configuration? `before`: only to older ones than this
 * number; 0: to any. */
static bool is_earlier(const struct mk_config_entry *e, unsigned before)
{
    unsigned number = e->source ? e->source : e->number;
    return (!before || number < before) && e->outcome != MK_OUTCOME_ROLLED_BACK &&
           e->outcome != MK_OUTCOME_UNCONFIRMED;
}

/* Finds the newest configuration that served without being abandoned, is older than the serving one, and
 * differs from it. After a return, "older" refers to the configuration that has returned: otherwise two
 * rollbacks would lead back to the abandoned one. NULL: h->error tells why. */
static struct mk_config_texts *load_previous_texts(struct mk_config_history *h)
{
    struct mk_config_list list;
    const char *error;
    unsigned before = h->serving ? h->serving->number : 0;
    if (mk_config_store_list(h->files->path, &list, &error))
        list.n = 0;
    for (size_t i = 0; i < list.n; i++) {
        if (!is_earlier(&list.at[i], before))
            continue;
        struct mk_config_texts *texts = load_kept_texts(h, list.at[i].number);
        if (!texts || !h->serving || !mk_config_texts_equal(texts, h->serving))
            return texts;
        mk_config_texts_unref(texts);
    }
    snprintf(h->error, sizeof h->error, "no earlier configuration is kept");
    return NULL;
}

/* Finds the texts of a rollback. NULL: h->error tells why. */
static struct mk_config_texts *find_rollback_texts(struct mk_config_history *h, unsigned number)
{
    if (number)
        return load_kept_texts(h, number);
    return h->confirmed ? mk_config_texts_ref(h->confirmed) : load_previous_texts(h);
}

/* Does it lead back to the confirmed configuration? */
static bool is_return(const struct mk_config_history *h, const struct load *l)
{
    return l->order.is_rollback && h->confirmed && l->texts == h->confirmed;
}

/* `texts`: a reference, which moves to the next reload. A reload of files that replaces another one keeps the
 * time for the confirmation that the other one has requested. */
static void set_next(struct mk_config_history *h, const struct mk_reload_order *order,
                     struct mk_config_texts *texts)
{
    uint32_t confirm_s = h->has_next && !h->next.order.is_rollback ? h->next.order.confirm_s : 0;
    clear_load(&h->next);
    h->next = (struct load){.order = *order, .texts = texts};
    if (!order->is_rollback && !order->confirm_s)
        h->next.order.confirm_s = confirm_s;
    h->has_next = true;
}

static void drop_next(struct mk_config_history *h)
{
    clear_load(&h->next);
    h->has_next = false;
}

/* Checks whether the order can be obeyed now. */
static bool accept_order(struct mk_config_history *h, const struct mk_reload_order *order)
{
    bool is_return_due = h->is_overdue && h->has_next && is_return(h, &h->next);
    if (is_return_due && (!order->is_rollback || order->number))
        snprintf(h->error, sizeof h->error,
                 "the previous configuration is about to return: try again afterwards");
    else if (order->confirm_s && !h->serving)
        snprintf(h->error, sizeof h->error,
                 "the running configuration could not be remembered: out of memory");
    else
        return true;
    return false;
}

/* Does the next reload load the same as the order demands? */
static bool agrees_with_next(const struct mk_config_history *h, const struct mk_reload_order *order,
                             const struct mk_config_texts *texts)
{
    if (!order->is_rollback || !h->next.order.is_rollback)
        return order->is_rollback == h->next.order.is_rollback;
    return mk_config_texts_equal(texts, h->next.texts);
}

static enum mk_reload_verdict queue_order(struct mk_config_history *h, const struct mk_reload_order *order)
{
    struct mk_config_texts *texts = NULL;
    if (order->is_rollback && !(texts = find_rollback_texts(h, order->number)))
        return MK_RELOAD_REJECTED;
    if (h->is_loading && order->is_rollback && is_return(h, &h->under_way) && texts == h->confirmed) {
        mk_config_texts_unref(texts);
        return MK_RELOAD_UNDER_WAY;
    }
    bool replaces = h->has_next && !agrees_with_next(h, order, texts);
    set_next(h, order, texts);
    return replaces ? MK_RELOAD_REPLACES : MK_RELOAD_NEXT;
}

enum mk_reload_verdict mk_config_history_order(struct mk_config_history *h,
                                               const struct mk_reload_order *order, const char **error)
{
    if (!h) {
        *error = "only a configuration in files has a history";
        return order->confirm_s || order->is_rollback ? MK_RELOAD_REJECTED : MK_RELOAD_NEXT;
    }
    *error = h->error;
    if (h->has_next && order->automatic) /* the requested reload reads the changed files, too */
        return MK_RELOAD_NEXT;
    return accept_order(h, order) ? queue_order(h, order) : MK_RELOAD_REJECTED;
}

/* ---- A reload ---- */

/* An automatic reload, such as that of a renewed certificate, loads the texts that serve: the files may contain
 * changes that no administrator has requested yet. */
static bool loads_serving(const struct mk_config_history *h, bool has_order)
{
    return !has_order || h->under_way.order.automatic;
}

bool mk_config_history_begin(struct mk_config_history *h, struct mk_config_source *source)
{
    if (!h)
        return true;
    bool has_order = h->has_next;
    clear_load(&h->under_way);
    h->under_way = has_order ? h->next : (struct load){.order = {.automatic = true, .by = "server"}};
    h->next = (struct load){0};
    h->has_next = false;
    h->is_loading = true;
    if (loads_serving(h, has_order))
        h->under_way.texts = mk_config_texts_ref(h->serving);
    source->path = h->files->path;
    source->io = h->files->io;
    source->folder = NULL;
    source->is_repeated = loads_serving(h, has_order) && h->under_way.texts;
    if (h->under_way.texts)
        mk_config_texts_replay(h->under_way.texts, source);
    return has_order;
}

void mk_config_history_begin_load(struct mk_config_history *h, struct mk_config_source *source)
{
    if (!h || h->under_way.texts)
        return;
    h->under_way.texts = mk_config_texts_new();
    h->is_recording = h->under_way.texts;
    if (h->is_recording)
        mk_config_texts_record(h->under_way.texts, source);
}

void mk_config_history_end_load(struct mk_config_history *h, const struct mk_config_generation *g)
{
    if (!h)
        return;
    if (h->is_recording && (!g || !mk_config_texts_end_recording(h->under_way.texts, g)))
        clear_load(&h->under_way);
    h->is_recording = false;
}

/* ---- Confirming ---- */

static void set_confirm_time(struct mk_config_history *h, int64_t at)
{
    atomic_store(&h->stats(h->ctx)->confirm_at, at);
}

static void end_confirmation(struct mk_config_history *h)
{
    mk_timer_stop(&h->timer);
    set_confirm_time(h, 0);
    mk_config_texts_unref(h->confirmed);
    h->confirmed = NULL;
    h->is_overdue = false;
}

static void await_confirmation(struct mk_config_history *h)
{
    uint32_t confirm_s = h->under_way.order.confirm_s;
    mk_log_warn(h->log,
                "the server returns to the previous configuration in %u s unless you run `monkey confirm`",
                confirm_s);
    if (h->lacks_confirm)
        mk_log_warn(h->log, "the new configuration does not load cheetah: `monkey confirm` cannot reach it");
    set_confirm_time(h, mk_clock_unix() + confirm_s);
    h->is_overdue = false;
    mk_loop_set_timer(h->loop, &h->timer, confirm_s * 1000);
}

/* Requests nothing if an administrator has requested the return, which is in progress. */
static void on_confirm_timeout(struct mk_timer *t)
{
    struct mk_config_history *h = MK_CONTAINER(t, struct mk_config_history, timer);
    const struct mk_reload_order order = {.is_rollback = true, .by = BY_TIMER};
    mk_loop_set_timer(h->loop, &h->timer, RETRY_MS); /* in case that the configuration cannot be loaded now */
    h->is_overdue = true;
    if (h->is_loading && is_return(h, &h->under_way))
        return;
    mk_log_warn(h->log, "the configuration was not confirmed in time: returning to the previous one");
    set_next(h, &order, mk_config_texts_ref(h->confirmed));
    h->reload(h->ctx);
}

bool mk_config_history_confirm(struct mk_config_history *h, mk_str by)
{
    if (!h || !h->confirmed || (h->is_loading && is_return(h, &h->under_way)))
        return false;
    if (h->has_next && is_return(h, &h->next))
        drop_next(h);
    end_confirmation(h);
    store_outcome(h, MK_OUTCOME_CONFIRMED);
    mk_log_info(h->log, "%.*s confirms the configuration", MK_STR_ARG(by));
    return true;
}

bool mk_config_history_awaits_confirmation(const struct mk_config_history *h)
{
    return h && h->confirmed;
}

/* ---- Upgrade ---- */

static bool files_serve(const struct mk_config_history *h)
{
    struct mk_config_texts *texts = mk_config_texts_new();
    bool equal = texts && h->serving && mk_config_texts_read(texts, h->files) &&
                 mk_config_texts_equal(texts, h->serving);
    mk_config_texts_unref(texts);
    return equal;
}

bool mk_config_history_may_upgrade(const struct mk_config_history *h, const char **error)
{
    *error = "";
    if (h && h->confirmed)
        *error = "before the configuration is confirmed or replaced";
    else if (h && h->is_pinned && !files_serve(h))
        *error = "after a rollback: it would load the files, which differ from the configuration that "
                 "serves; change "
                 "the files (see `monkey diff`), or load them with `monkey reload`";
    return !**error;
}

/* ---- The end of a reload ---- */

/* Marks the configuration that a rollback to other texts replaces. */
static void mark_abandoned(struct mk_config_history *h, const struct mk_config_texts *next)
{
    if (h->under_way.order.is_rollback && !(h->serving && mk_config_texts_equal(h->serving, next)))
        store_outcome(h, MK_OUTCOME_ROLLED_BACK);
}

/* Chooses the texts to which the server returns without a confirmation. `before`: the texts that served until
 * now. */
static void keep_confirmed(struct mk_config_history *h, struct mk_config_texts *before)
{
    if (h->under_way.order.is_rollback && h->confirmed) {
        if (h->has_next && is_return(h, &h->next))
            drop_next(h);
        end_confirmation(h);
    }
    if (h->under_way.order.confirm_s && !h->confirmed)
        h->confirmed = mk_config_texts_ref(before);
}

void mk_config_history_serves(struct mk_config_history *h, const struct mk_config_generation *g)
{
    if (!h)
        return;
    h->lacks_confirm = !mk_plugin_list_find_name(g, "cheetah");
    struct mk_config_texts *before = h->serving, *texts = h->under_way.texts;
    const struct mk_reload_order *order = &h->under_way.order;
    bool is_first = !before && !h->entry.time;
    mark_abandoned(h, texts);
    h->serving = texts;
    h->under_way.texts = NULL;
    h->is_loading = false;
    h->is_pinned = order->is_rollback || (order->automatic && h->is_pinned);
    if (is_first)
        warn_of_rejected_start(h);
    keep_confirmed(h, before);
    if (texts && texts != before)
        store_serving(h);
    if (order->confirm_s && h->confirmed)
        await_confirmation(h);
    mk_config_texts_unref(before);
}

void mk_config_history_describe(const struct mk_config_history *h, char *buf, size_t size)
{
    const struct mk_reload_order *order = h ? &h->under_way.order : NULL;
    unsigned number = !order ? 0 : order->number ? order->number : h->serving ? h->serving->number : 0;
    if (order && order->confirm_s && h->lacks_confirm)
        snprintf(buf, size,
                 "the new configuration serves, but does not load cheetah, which `monkey confirm` needs");
    else if (!order || !order->is_rollback)
        snprintf(buf, size, "the new configuration serves");
    else if (number)
        snprintf(buf, size, "configuration %u serves again (rollback by %s)", number, order->by);
    else
        snprintf(buf, size, "the previous configuration serves again (rollback by %s)", order->by);
}

void mk_config_history_failed(struct mk_config_history *h)
{
    if (!h)
        return;
    if (h->is_overdue && h->is_loading && is_return(h, &h->under_way))
        mk_log_error(h->log, "cannot return to the previous configuration: trying again in %d s",
                     RETRY_MS / 1000);
    clear_load(&h->under_way);
    h->is_loading = false;
}
