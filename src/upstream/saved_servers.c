/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/saved_servers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "upstream/added_server.h"
#include "upstream/health.h"

#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

bool mk_saved_servers_init(struct mk_config *config, struct mk_upstream *u)
{
    char name[40];
    (void)snprintf(name, sizeof name, "upstream/saved/%016" PRIx64,
                   mk_upstream_stats_key(u->name, u->state_file));
    u->saved = mk_config_shared(config, name, sizeof *u->saved);
    u->n_changes_at_load = u->saved ? u->saved->n_changes : 0;
    return u->saved;
}

/* ---- Entries ---- */

struct mk_saved_server *mk_saved_servers_next(struct mk_saved_servers *list, uint64_t serial)
{
    struct mk_saved_server *next = NULL;
    for (unsigned i = 0; i < MK_SERVERS_MAX; i++)
        if (list->of[i].serial > serial && (!next || list->of[i].serial < next->serial))
            next = &list->of[i];
    return next;
}

static mk_str entry_name(const struct mk_saved_server *e)
{
    return mk_str_of(e->name, strnlen(e->name, sizeof e->name));
}

static struct mk_saved_server *list_find(struct mk_saved_servers *list, mk_str name)
{
    for (unsigned i = 0; i < MK_SERVERS_MAX; i++)
        if (list->of[i].serial && mk_str_eq(entry_name(&list->of[i]), name))
            return &list->of[i];
    return NULL;
}

static void list_remove(struct mk_saved_servers *list, mk_str name)
{
    struct mk_saved_server *e = list_find(list, name);
    if (e)
        STORE(&e->serial, 0);
}

static struct mk_saved_server *find_unused(struct mk_saved_servers *list)
{
    for (unsigned i = 0; i < MK_SERVERS_MAX; i++)
        if (!list->of[i].serial)
            return &list->of[i];
    return mk_saved_servers_next(list, 0);
}

static void list_add(struct mk_saved_servers *list, mk_str name, enum mk_server_mode mode, unsigned weight)
{
    struct mk_saved_server *e = find_unused(list);
    STORE(&e->serial, 0);
    memset(e->name, 0, sizeof e->name);
    memcpy(e->name, name.p, mk_min(name.len, sizeof e->name - 1));
    e->mode = mode;
    e->weight = weight;
    STORE(&list->serial, list->serial + 1);
    STORE(&e->serial, list->serial);
}

/* ---- The list ---- */

static void publish_list(const struct mk_upstream *u)
{
    const struct mk_server_state *state = u->loaded;
    for (unsigned i = 0; i < MK_SERVERS_MAX; i++)
        STORE(&u->saved->of[i].serial, 0);
    for (unsigned i = 0; state && i < state->n; i++)
        list_add(u->saved, state->entries[i].server, state->entries[i].mode, state->entries[i].weight);
}

/* While a worker holds the lock, it saves a change, and the list is newer than the file that was read. */
void mk_saved_servers_publish(const struct mk_upstreams *all)
{
    for (const struct mk_upstream *u = all->first; u; u = u->next) {
        if (!u->saved || !mk_conn_limit_lock_changes(&all->limit))
            continue;
        if (u->saved->n_changes == u->n_changes_at_load)
            publish_list(u);
        mk_conn_limit_unlock_changes(&all->limit);
    }
}

bool mk_saved_servers_find(const struct mk_upstream *u, mk_str name, struct mk_server_state_entry *out)
{
    const struct mk_saved_server *e = u->saved ? list_find(u->saved, name) : NULL;
    if (e)
        *out = (struct mk_server_state_entry){.mode = (enum mk_server_mode)e->mode, .weight = e->weight};
    return e;
}

/* A server that the configuration contains, or that the administrator has added, has a line of its own. */
static void update_server(struct mk_saved_servers *list, const struct mk_upstream_server *s)
{
    enum mk_server_mode mode = mk_health_mode(s);
    unsigned weight = mk_health_full_weight(s), listed = mk_added_server_listed_weight(s);
    if (!s->name.p || (s->is_spare && mode >= MK_SERVER_REMOVED))
        return;
    list_remove(list, s->name);
    if (listed && (mode != MK_SERVER_ENABLED || weight != listed))
        list_add(list, s->name, mode, weight != listed ? weight : 0);
}

static unsigned count_entries(const struct mk_saved_servers *list)
{
    unsigned n = 0;
    for (unsigned i = 0; i < MK_SERVERS_MAX; i++)
        n += list->of[i].serial != 0;
    return n;
}

void mk_saved_servers_update(const struct mk_upstream *u, unsigned n_lines)
{
    struct mk_saved_servers *list = u->saved;
    STORE(&list->n_changes, list->n_changes + 1);
    for (unsigned i = 0; i < u->n; i++)
        update_server(list, &u->servers[i]);
    for (unsigned n = count_entries(list); n && n + n_lines > MK_SERVERS_MAX; n--)
        STORE(&mk_saved_servers_next(list, 0)->serial, 0);
}

void mk_saved_servers_file_written(const struct mk_upstream *u)
{
    if (u->saved)
        STORE(&u->saved->n_changes, u->saved->n_changes + 1);
}
