/* SPDX-License-Identifier: Apache-2.0 */
/* The master's memory of configurations. It chooses what a reload loads (files, the running texts, or texts that
 * served before), keeps the last configurations in the state folder, and returns to the previous
 * configuration if `monkey reload --confirm` is not confirmed in time. */
#ifndef MK_SERVER_CONFIG_HISTORY_H
#define MK_SERVER_CONFIG_HISTORY_H

#include "event/loop.h"
#include "setup/config_generation_type.h"
#include "worker/scoreboard.h"

enum { MK_CONFIG_HISTORY_BY = 96 };

/* A requested reload. */
struct mk_reload_order {
    bool automatic;     /* requested by a changed file or a plugin, not by an administrator */
    bool is_rollback;   /* load a configuration that served before */
    unsigned number;    /* number of that configuration; 0: the previous one */
    uint32_t confirm_s; /* return to the confirmed configuration after this time; 0: confirmed at once */
    uint64_t id;        /* for the result; 0: no administrator waits for it */
    char by[MK_CONFIG_HISTORY_BY];
};

/* What becomes of an order. */
enum mk_reload_verdict {
    MK_RELOAD_REJECTED,
    MK_RELOAD_NEXT,      /* the next reload obeys it, together with the orders that wait for that reload */
    MK_RELOAD_REPLACES,  /* the next reload obeys it, in place of the orders that wait for that reload */
    MK_RELOAD_UNDER_WAY, /* the reload in progress obeys it */
};

struct mk_config_history;

/* `files`: where the configuration is read from. `reload`: called to request the reload that returns to
 * the confirmed configuration.
 * NULL: nothing is remembered, because memory is short, the configuration is not in files, or this server was
 * built without a history. All functions accept NULL. */
struct mk_config_history *mk_config_history_new(const struct mk_config_source *files,
                                                struct mk_reload_stats *(*stats)(void *ctx),
                                                void (*reload)(void *ctx), void *ctx);
void mk_config_history_free(struct mk_config_history *h);
/* Call it before the first use of the timer. */
void mk_config_history_start(struct mk_config_history *h, struct mk_loop *loop, struct mk_log *log);

/* Remembers the order for the next reload. MK_RELOAD_REJECTED: *error, static text or text of the history, tells
 * why. */
enum mk_reload_verdict mk_config_history_order(struct mk_config_history *h,
                                               const struct mk_reload_order *order, const char **error);
/* Call it when a reload begins: sets what `source` loads, and whether that repeats what serves. False: the order for this reload is void, because the
 * configuration was confirmed, or another rollback has succeeded. The reload then loads what serves. */
bool mk_config_history_begin(struct mk_config_history *h, struct mk_config_source *source);
/* Call it before and after the master loads `source`. `g`: NULL if it could not be loaded. */
void mk_config_history_begin_load(struct mk_config_history *h, struct mk_config_source *source);
void mk_config_history_end_load(struct mk_config_history *h, const struct mk_config_generation *g);
/* Call one of them when the loaded configuration `g` serves, or does not and never will. */
void mk_config_history_serves(struct mk_config_history *h, const struct mk_config_generation *g);
void mk_config_history_failed(struct mk_config_history *h);
/* Writes what serves since the last reload. */
void mk_config_history_describe(const struct mk_config_history *h, char *buf, size_t size);

/* Confirms the configuration that serves. False: none waits for its confirmation. */
bool mk_config_history_confirm(struct mk_config_history *h, mk_str by);
bool mk_config_history_awaits_confirmation(const struct mk_config_history *h);
/* May a new program replace this one? It reads the files. False: they differ from the configuration that serves, or it
 * waits for its confirmation; *error is static text. */
bool mk_config_history_may_upgrade(const struct mk_config_history *h, const char **error);

#endif
