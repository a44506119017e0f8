/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that needs the slot map fetches it from the node that sent the most recent reply, because that
 * node is unlikely to hang. */
#include "cluster.h"

#include <duda/memory.h>
#include <duda/request.h>
#include <duda/wait.h>
#include <monkey/mem.h>

#include "key_slot.h"

enum { NODES_MAX = 255, AGAIN_MS = 100, WAIT_MS = 20, OLD_MS = 60000 };

struct redis_node {
    struct redis_command_queue queue;
    bool is_mapped; /* owns slots */
};

struct redis_cluster {
    struct mk_worker *worker;
    const struct redis_settings *settings;
    struct redis_command_queue *any;
    struct redis_node *nodes[NODES_MAX];
    unsigned char slots[REDIS_SLOTS]; /* index of the node plus one; 0: none */
    uint64_t loaded_ms, tried_ms;
    bool is_doubtful, is_loading;
};

struct redis_cluster *redis_cluster_new(struct mk_worker *w, const struct redis_settings *settings,
                                        struct redis_command_queue *any)
{
    struct redis_cluster *c = mk_mem_zalloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->worker = w;
    c->settings = settings;
    c->any = any;
    c->is_doubtful = true;
    return c;
}

static void free_node(struct redis_node **node)
{
    if (*node)
        redis_command_queue_fini(&(*node)->queue);
    mk_mem_free(*node);
    *node = NULL;
}

void redis_cluster_free(struct redis_cluster *c)
{
    for (unsigned i = 0; c && i < NODES_MAX; i++)
        free_node(&c->nodes[i]);
    mk_mem_free(c);
}

/* ---- Nodes ---- */

static bool open_node(struct redis_cluster *c, struct redis_node **at, const char *address)
{
    struct redis_node *node = mk_mem_zalloc(1, sizeof *node);
    *at = node;
    if (node && redis_command_queue_init(&node->queue, c->worker, c->settings, address))
        free_node(at);
    return *at;
}

/* Returns one plus the index of the node at that address, and adds the node if necessary; 0 if out of memory,
 * or if there are too many nodes. */
static unsigned find_or_add_node(struct redis_cluster *c, const char *address)
{
    unsigned empty = NODES_MAX;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        if (c->nodes[i] && !strcmp(c->nodes[i]->queue.conn.address, address))
            return i + 1;
        if (!c->nodes[i] && empty == NODES_MAX)
            empty = i;
    }
    return empty < NODES_MAX && open_node(c, &c->nodes[empty], address) ? empty + 1 : 0;
}

static struct redis_command_queue *queue_of_node(struct redis_cluster *c, unsigned number)
{
    return number ? &c->nodes[number - 1]->queue : c->any;
}

/* ---- The slot map ---- */

static struct redis_command_queue *most_recent_node_queue(struct redis_cluster *c)
{
    struct redis_command_queue *best = c->any;
    uint64_t last_received_ms = redis_conn_is_up(&best->conn) ? best->conn.last_received_ms : 0;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        struct redis_node *node = c->nodes[i];
        if (!node || !redis_conn_is_up(&node->queue.conn) ||
            node->queue.conn.last_received_ms <= last_received_ms)
            continue;
        best = &node->queue;
        last_received_ms = best->conn.last_received_ms;
    }
    return best;
}

/* Parses [first slot, last slot, [host, port, ...] of the master, replicas ...]. */
static void parse_slot_range(struct duda_ctx *d, struct redis_cluster *c,
                             const struct duda_redis_reply *range)
{
    const struct duda_redis_reply *of = range->items;
    char address[REDIS_ADDRESS_MAX];
    if (range->type != DUDA_REDIS_LIST || range->n < 3 || of[2].type != DUDA_REDIS_LIST || of[2].n < 2 ||
        of[0].number < 0 || of[1].number >= REDIS_SLOTS)
        return;
    mk_str port = duda_sprintf(d, "%lld", (long long)of[2].items[1].number);
    unsigned number =
        redis_address_format(of[2].items[0].text, port, address) ? find_or_add_node(c, address) : 0;
    if (number)
        c->nodes[number - 1]->is_mapped = true;
    for (int64_t slot = of[0].number; slot <= of[1].number; slot++)
        c->slots[slot] = (unsigned char)number;
}

/* Removes nodes that have left the cluster, unless a handler still uses them. */
static void remove_unmapped_nodes(struct redis_cluster *c)
{
    for (unsigned i = 0; i < NODES_MAX; i++) {
        const struct redis_node *node = c->nodes[i];
        if (!node || node->is_mapped || redis_command_queue_count(&node->queue) || node->queue.n_users)
            continue;
        for (unsigned slot = 0; slot < REDIS_SLOTS; slot++)
            if (c->slots[slot] == i + 1)
                c->slots[slot] = 0;
        free_node(&c->nodes[i]);
    }
}

static void parse_slot_map(struct duda_ctx *d, struct redis_cluster *c, const struct duda_redis_reply *map)
{
    for (unsigned i = 0; i < NODES_MAX; i++)
        if (c->nodes[i])
            c->nodes[i]->is_mapped = false;
    for (size_t i = 0; i < map->n; i++)
        parse_slot_range(d, c, &map->items[i]);
    remove_unmapped_nodes(c);
    c->loaded_ms = mk_worker_now_ms(c->worker);
    c->is_doubtful = false;
}

static int fetch_slot_map(struct duda_ctx *d, struct redis_cluster *c)
{
    const mk_str parts[] = {MK_STR("CLUSTER"), MK_STR("SLOTS")};
    const struct duda_redis_command command = {parts, 2};
    struct duda_redis_reply map = {.type = DUDA_REDIS_NIL};
    bool is_not_sent;
    size_t mark = duda_arena_mark(d);
    c->tried_ms = mk_worker_now_ms(c->worker);
    int e = redis_request_run(d, most_recent_node_queue(c),
                              &(struct redis_request){.commands = &command, .n = 1}, &map, &is_not_sent);
    if (!e && map.type == DUDA_REDIS_LIST && map.n)
        parse_slot_map(d, c, &map);
    duda_arena_rewind(d, mark);
    return e;
}

/* Fetches the slot map. Only one handler does so; the others use the old map in the meantime. */
static int refresh_slot_map(struct duda_ctx *d, struct redis_cluster *c)
{
    uint64_t now = mk_worker_now_ms(c->worker);
    bool is_old = c->is_doubtful || now - c->loaded_ms >= OLD_MS;
    int e = 0;
    if (is_old && !c->is_loading && (!c->tried_ms || now - c->tried_ms >= AGAIN_MS)) {
        c->is_loading = true;
        e = fetch_slot_map(d, c);
        c->is_loading = false;
    }
    while (!e && c->is_loading && !c->loaded_ms)
        e = duda_sleep(d, WAIT_MS);
    return c->loaded_ms ? duda_cancelled(d) : e;
}

void redis_cluster_invalidate(struct redis_cluster *c)
{
    c->is_doubtful = true;
}

int redis_cluster_find_node(struct duda_ctx *d, struct redis_cluster *c, int slot,
                            struct redis_command_queue **out)
{
    int e = refresh_slot_map(d, c);
    *out = slot < 0 ? most_recent_node_queue(c) : queue_of_node(c, c->slots[slot]);
    return e;
}

/* ---- Redirects ---- */

/* Parses "MOVED 3999 127.0.0.1:6381" or "ASK ...". */
static struct redis_command_queue *parse_redirect(struct redis_cluster *c, mk_str text, bool moved)
{
    char address[REDIS_ADDRESS_MAX];
    (void)mk_str_word(&text);
    mk_str slot = mk_str_word(&text), to = mk_str_word(&text);
    size_t colon = mk_str_find_last(to, ':');
    uint64_t n;
    if (colon >= to.len || !mk_num_parse(slot, &n) || n >= REDIS_SLOTS)
        return NULL;
    mk_str host = mk_str_first(to, colon);
    unsigned number =
        redis_address_format(host, mk_str_skip(to, host.len + 1), address) ? find_or_add_node(c, address) : 0;
    if (!number)
        return NULL;
    if (moved)
        c->slots[n] = (unsigned char)number;
    return queue_of_node(c, number);
}

enum redis_redirect redis_cluster_parse_redirect(struct redis_cluster *c,
                                                 const struct duda_redis_reply *replies, size_t n,
                                                 struct redis_command_queue **to)
{
    static const mk_str passing[] = {MK_STR("TRYAGAIN"), MK_STR("CLUSTERDOWN"), MK_STR("LOADING"),
                                     MK_STR("MASTERDOWN")};
    for (size_t i = 0; i < n; i++) {
        mk_str text = replies[i].text;
        if (replies[i].type != DUDA_REDIS_ERROR)
            continue;
        bool moved = mk_str_starts(text, MK_STR("MOVED "));
        if (moved || mk_str_starts(text, MK_STR("ASK "))) {
            c->is_doubtful |= moved;
            *to = parse_redirect(c, text, moved);
            return !*to ? REDIS_REDIRECT_RETRY : moved ? REDIS_REDIRECT_MOVED : REDIS_REDIRECT_ASK;
        }
        for (size_t k = 0; k < MK_LEN(passing); k++)
            if (mk_str_starts(text, passing[k])) {
                c->is_doubtful = true;
                return REDIS_REDIRECT_RETRY;
            }
    }
    return REDIS_REDIRECT_NONE;
}
