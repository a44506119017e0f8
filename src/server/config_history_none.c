/* SPDX-License-Identifier: Apache-2.0 */
#include "server/config_history.h"

#include <stdio.h>

struct mk_config_history *mk_config_history_new(const struct mk_config_source *files,
                                                struct mk_reload_stats *(*stats)(void *ctx),
                                                void (*reload)(void *ctx), void *ctx)
{
    (void)files, (void)stats, (void)reload, (void)ctx;
    return NULL;
}

void mk_config_history_free(struct mk_config_history *h)
{
    (void)h;
}

void mk_config_history_start(struct mk_config_history *h, struct mk_loop *loop, struct mk_log *log)
{
    (void)h, (void)loop, (void)log;
}

enum mk_reload_verdict mk_config_history_order(struct mk_config_history *h,
                                               const struct mk_reload_order *order, const char **error)
{
    (void)h;
    *error = "this server was built without a history of configurations (MK_CONFIG_HISTORY)";
    return order->confirm_s || order->is_rollback ? MK_RELOAD_REJECTED : MK_RELOAD_NEXT;
}

bool mk_config_history_begin(struct mk_config_history *h, struct mk_config_source *source)
{
    (void)h, (void)source;
    return true;
}

void mk_config_history_begin_load(struct mk_config_history *h, struct mk_config_source *source)
{
    (void)h, (void)source;
}

void mk_config_history_end_load(struct mk_config_history *h, const struct mk_config_generation *g)
{
    (void)h, (void)g;
}

void mk_config_history_serves(struct mk_config_history *h, const struct mk_config_generation *g)
{
    (void)h, (void)g;
}

void mk_config_history_failed(struct mk_config_history *h)
{
    (void)h;
}

void mk_config_history_describe(const struct mk_config_history *h, char *buf, size_t size)
{
    (void)h;
    snprintf(buf, size, "the new configuration serves");
}

bool mk_config_history_confirm(struct mk_config_history *h, mk_str by)
{
    (void)h, (void)by;
    return false;
}

bool mk_config_history_may_upgrade(const struct mk_config_history *h, const char **error)
{
    (void)h;
    *error = "";
    return true;
}

bool mk_config_history_awaits_confirmation(const struct mk_config_history *h)
{
    (void)h;
    return false;
}
