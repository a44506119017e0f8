/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/board.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

bool mk_board_open(struct mk_board *b, struct mk_config *config)
{
    b->shown = mk_config_shared(config, MK_UPSTREAM_BOARD, sizeof *b->shown);
    b->ledgers = mk_config_shared(config, "upstream/ledgers", sizeof *b->ledgers);
    if (!b->shown || !b->ledgers)
        return false;
    return mk_config_hash_key(config, "upstream: clients", &b->ledgers->key) == 0;
}

/* ---- Servers: only the master changes their places ---- */

void mk_board_hide(struct mk_board *b, unsigned place)
{
    mk_board_info(b, place)->server[0] = '\0';
}

/* FNV-1a: names come out of the configuration, and two servers with one key would only share their state. */
static uint64_t mix(uint64_t key, mk_str text)
{
    for (size_t i = 0; i < text.len; i++)
        key = (key ^ (unsigned char)text.p[i]) * 0x100000001b3;
    return key;
}

static uint64_t key_of(mk_str upstream, mk_str server)
{
    uint64_t key = mix(mix(mix(0xcbf29ce484222325, upstream), MK_STR("\n")), server);
    return key ? key : 1;
}

static void write_name(char room[MK_UPSTREAM_NAME], mk_str name)
{
    name = mk_str_first(name, MK_UPSTREAM_NAME - 1);
    if (name.len)
        memcpy(room, name.p, name.len);
    room[name.len] = '\0';
}

/* Neither what serves now has it, nor what is being loaded. */
static bool is_free(const struct mk_board *b, const struct mk_board_plan *plan, unsigned place)
{
    return !plan->keys[place] && (place >= b->shown->n || !b->shown->servers[place].info.server[0]);
}

/* A place of its own, else one that was never used, else one that the configuration uses no more. */
static bool find_place(const struct mk_board *b, const struct mk_board_plan *plan, uint64_t key,
                       unsigned *place)
{
    for (*place = 0; *place < MK_UPSTREAM_SERVERS; ++*place)
        if (plan->keys[*place] == key)
            return true;
    for (*place = 0; *place < b->shown->n; ++*place)
        if (!plan->keys[*place] && b->ledgers->of[*place].key == key)
            return true;
    for (; *place < MK_UPSTREAM_SERVERS; ++*place)
        if (is_free(b, plan, *place))
            return true;
    for (*place = 0; *place < MK_UPSTREAM_SERVERS; ++*place)
        if (is_free(b, plan, *place))
            return true;
    return false;
}

bool mk_board_find(const struct mk_board *b, struct mk_board_plan *plan, mk_str upstream, mk_str server,
                   unsigned *place)
{
    uint64_t key = key_of(upstream, server);
    if (!find_place(b, plan, key, place))
        return false;
    plan->keys[*place] = key;
    return true;
}

void mk_board_name(struct mk_board *b, unsigned place, mk_str upstream, mk_str server)
{
    struct mk_upstream_info *info = mk_board_info(b, place);
    struct mk_ledger *ledger = mk_board_ledger(b, place);
    uint64_t key = key_of(upstream, server);
    if (ledger->key != key) {
        memset(&b->shown->servers[place], 0, sizeof b->shown->servers[place]);
        memset(ledger, 0, sizeof *ledger);
        ledger->key = key;
    }
    write_name(info->upstream, upstream);
    write_name(info->server, server);
    if (place >= b->shown->n)
        __atomic_store_n(&b->shown->n, place + 1, __ATOMIC_RELEASE);
}

void mk_board_keep(struct mk_board *b, struct mk_board_former *former)
{
    former->n_shown = ++b->ledgers->n_shown;
    former->pid = (uint32_t)getpid();
    for (unsigned i = 0; i < b->shown->n; i++) {
        const struct mk_upstream_info *info = mk_board_info(b, i);
        former->of[i].backup = info->backup;
        former->of[i].weight = info->weight;
        former->of[i].max = info->max;
        former->of[i].first = info->server[0];
    }
}

void mk_board_restore(struct mk_board *b, const struct mk_board_former *former)
{
    bool is_ours = former->pid == (uint32_t)getpid(); /* workers have a copy of former configurations */
    if (!former->n_shown || !is_ours || b->ledgers->n_shown != former->n_shown)
        return;
    for (unsigned i = 0; i < b->shown->n; i++) {
        struct mk_upstream_info *info = mk_board_info(b, i);
        info->backup = former->of[i].backup;
        info->weight = former->of[i].weight;
        info->max = former->of[i].max;
        info->server[0] = former->of[i].first;
    }
}

/* ---- Clients ---- */

static uint32_t *served_of(struct mk_ledger *l, uint64_t client)
{
    return &l->served[client % MK_BOARD_BUCKETS];
}

/* The bucket counts first and forgets last: so it never has too few, even if the worker dies in between. */
static void serve(struct mk_ledger *l, unsigned slot, uint64_t client)
{
    if (client)
        __atomic_fetch_add(served_of(l, client), 1, __ATOMIC_RELAXED);
    uint64_t old = __atomic_exchange_n(&l->clients[slot], client, __ATOMIC_ACQ_REL);
    if (old)
        __atomic_fetch_sub(served_of(l, old), 1, __ATOMIC_RELAXED);
}

void mk_board_serve(const struct mk_board *b, unsigned place, unsigned slot, uint64_t client)
{
    serve(mk_board_ledger(b, place), slot, client);
}

unsigned mk_board_count_at_most(const struct mk_board *b, unsigned place, uint64_t client)
{
    return LOAD(served_of(mk_board_ledger(b, place), client));
}

/* ---- Workers ---- */

static bool is_alive(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* Gives back what the worker of that row held. */
static void empty_row(struct mk_board *b, unsigned row)
{
    for (unsigned i = 0; i < LOAD(&b->shown->n); i++) {
        struct mk_ledger *ledger = mk_board_ledger(b, i);
        memset(mk_board_gauge(b, i, row), 0, sizeof(struct mk_upstream_gauge));
        for (unsigned k = 0; k < MK_LEN(ledger->oldest[row]); k++)
            STORE(&ledger->oldest[row][k].since_ms, 0);
        for (unsigned s = 0; s < MK_BUDGET_MAX; s++)
            if (LOAD(&ledger->slots[s]) == row + 1) {
                serve(ledger, s, 0);
                STORE(&ledger->slots[s], 0);
            }
    }
}

static bool take_row(struct mk_board *b, unsigned row, uint32_t pid)
{
    uint32_t *at = &b->ledgers->pids[row], old = LOAD(at);
    if (old && is_alive(old))
        return false;
    return __atomic_compare_exchange_n(at, &old, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool mk_board_enter(struct mk_board *b, unsigned index, unsigned *row)
{
    for (*row = 0; *row < MK_UPSTREAM_WORKERS; ++*row) {
        if (!take_row(b, *row, (uint32_t)getpid()))
            continue;
        uint32_t n = LOAD(&b->shown->n_workers);
        while (n <= *row && !__atomic_compare_exchange_n(&b->shown->n_workers, &n, *row + 1, true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        STORE(&b->ledgers->indexes[*row], index);
        empty_row(b, *row);
        return true;
    }
    return false;
}

void mk_board_leave(struct mk_board *b, unsigned row)
{
    empty_row(b, row);
    __atomic_store_n(&b->ledgers->pids[row], 0, __ATOMIC_RELEASE);
}

void mk_board_reap(struct mk_board *b)
{
    for (unsigned row = 0; row < LOAD(&b->shown->n_workers); row++) {
        uint32_t pid = LOAD(&b->ledgers->pids[row]);
        if (!pid || is_alive(pid) || !take_row(b, row, (uint32_t)getpid()))
            continue;
        mk_board_leave(b, row);
    }
}

/* ---- The budget ---- */

bool mk_board_claim(struct mk_board *b, unsigned place, unsigned max, unsigned row, unsigned *slot)
{
    uint16_t *slots = mk_board_ledger(b, place)->slots, mine = (uint16_t)(row + 1);
    for (*slot = 0; *slot < max && *slot < MK_BUDGET_MAX; ++*slot) {
        uint16_t none = 0;
        if (!LOAD(&slots[*slot]) && __atomic_compare_exchange_n(&slots[*slot], &none, mine, false,
                                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

void mk_board_release(struct mk_board *b, unsigned place, unsigned slot)
{
    struct mk_ledger *l = mk_board_ledger(b, place);
    if (LOAD(&l->clients[slot]))
        serve(l, slot, 0);
    __atomic_store_n(&l->slots[slot], 0, __ATOMIC_RELEASE);
}
