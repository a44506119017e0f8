/* SPDX-License-Identifier: Apache-2.0 */
#include "service/board.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

struct duda_board *duda_board_get(struct mk_config *config)
{
    return mk_config_shared(config, "duda.board", sizeof(struct duda_board));
}

/* FNV-1a: names are ours, and of one program. */
static uint64_t id_of(mk_str name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.p[i]) * 0x100000001b3u;
    return h ? h : 1;
}

struct duda_place *duda_board_place(struct duda_board *b, mk_str name)
{
    uint64_t id = id_of(name);
    for (size_t i = 0; i < DUDA_PLACES; i++) {
        struct duda_place *p = &b->places[(id + i) % DUDA_PLACES];
        uint64_t found = 0;
        if (atomic_load(&p->id) == id)
            return p;
        /* Only the master loads configurations, but a reload may meet a worker that reads. */
        if (atomic_load(&p->id) == 0 && atomic_compare_exchange_strong(&p->id, &found, id)) {
            mk_str text = mk_str_first(name, DUDA_PLACE_NAME - 1);
            memcpy(p->name, text.p, text.len);
            return p;
        }
    }
    return NULL;
}

static bool is_none(int64_t owner)
{
    return owner == 0;
}

static bool is_dead(int64_t owner)
{
    return owner && kill((pid_t)owner, 0) < 0 && errno == ESRCH;
}

static bool is_other(int64_t owner)
{
    return owner && owner != (int64_t)getpid() && !is_dead(owner);
}

/* The first post of that number with such an owner; NULL: there is none. */
static struct duda_post *find_post(struct duda_board *b, unsigned worker, bool (*is)(int64_t owner),
                                   int64_t *owner)
{
    for (unsigned i = 0; b && worker < DUDA_POSTS && i < DUDA_POST_SHARES; i++) {
        *owner = atomic_load(&b->posts[worker][i].pid);
        if (is(*owner))
            return &b->posts[worker][i];
    }
    return NULL;
}

/* Another worker may be faster. */
static struct duda_post *take_post(struct duda_board *b, unsigned worker, bool (*is)(int64_t owner))
{
    int64_t owner;
    struct duda_post *post;
    do
        post = find_post(b, worker, is, &owner);
    while (post && !atomic_compare_exchange_strong(&post->pid, &owner, (int64_t)getpid()));
    return post;
}

struct duda_post *duda_board_post(struct duda_board *b, unsigned worker)
{
    return take_post(b, worker, is_none);
}

struct duda_post *duda_board_find_dead(struct duda_board *b, unsigned worker)
{
    return take_post(b, worker, is_dead);
}

bool duda_board_has_others(struct duda_board *b, unsigned worker)
{
    int64_t owner;
    return find_post(b, worker, is_other, &owner);
}

void duda_board_leave(struct duda_post *post)
{
    if (!post)
        return;
    atomic_store(&post->runs, 0);
    atomic_store(&post->pid, 0);
}

static bool is_one_too_many(struct duda_place *p, const struct duda_rules *rules, int64_t now)
{
    int64_t window = (int64_t)(rules->window_ms / 1000);
    if (now - atomic_load(&p->since) > window) {
        atomic_store(&p->since, now);
        atomic_store(&p->recently, 0);
    }
    return atomic_fetch_add(&p->recently, 1) + 1 >= rules->crashes && rules->crashes;
}

bool duda_board_close(struct duda_place *p, const struct duda_rules *rules, int64_t now)
{
    if (!p || !rules || atomic_load(&p->closed_until) > now)
        return false;
    atomic_store(&p->closed_until, now + (int64_t)(rules->closed_ms / 1000));
    return true;
}

struct duda_place *duda_board_inherit(struct duda_board *b, struct duda_post *post,
                                      const struct duda_rules *rules, int64_t now, bool *closes)
{
    uint32_t runs = atomic_exchange(&post->runs, 0);
    *closes = false;
    if (runs == 0 || runs > DUDA_PLACES)
        return NULL;
    struct duda_place *p = &b->places[runs - 1];
    if (is_one_too_many(p, rules, now)) {
        *closes = duda_board_close(p, rules, now);
    }
    return p;
}
