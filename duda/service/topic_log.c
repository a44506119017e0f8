/* SPDX-License-Identifier: Apache-2.0 */
/* The memory consists of blocks of one size. A topic takes one block; a message takes as many as its text
 * needs. Blocks refer to each other by index; index 0 means none. */
#include "service/topic_log.h"

#include <duda/shm_mutex.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { BLOCK = 256, NAME_MAX_LEN = 127, BUCKETS_PER_BLOCK = BLOCK / sizeof(uint32_t) };

/* A topic. The topics of a size class form a list in the order of their last publication. */
struct topic {
    uint32_t next_in_bucket;
    uint32_t newer, older;
    uint32_t first, last; /* messages */
    uint32_t n_messages;
    uint32_t n_blocks; /* with the block of the topic itself */
    uint32_t keep_s;   /* maximum age of a message; 0: any */
    uint64_t hash, epoch, last_number;
    unsigned char len;
    char name[NAME_MAX_LEN];
};

/* The first block of a message. The following blocks contain only text. The numbers of a topic's messages are
 * consecutive. */
struct message {
    uint32_t more;       /* the next block of this message; also links free blocks */
    uint32_t next, prev; /* messages of the topic; prev of the first one is undefined */
    uint32_t jump;       /* the message whose number is jump_target(number); undefined if it was dropped */
    uint32_t len;
    uint32_t time_s; /* when it was published; wraps around */
    uint64_t number;
    unsigned char kind;
    char text[];
};

struct text_block {
    uint32_t more;
    char text[];
};

union block {
    struct topic topic;
    char bytes[BLOCK];
};
_Static_assert(sizeof(union block) == BLOCK, "a topic fits into a block");

enum {
    TEXT_FIRST = BLOCK - (int)offsetof(struct message, text),
    TEXT_MORE = BLOCK - (int)offsetof(struct text_block, text)
};

/* The topics that use from 2^i to 2^(i+1) - 1 blocks, where i is the index of the class. */
struct size_class {
    uint32_t newest, oldest; /* list of topics */
    uint32_t n_blocks;       /* of all its topics */
};

enum { SIZE_CLASSES = 32 };

struct duda_topic_log_memory {
    _Atomic uint32_t is_ready;
    uint32_t n_blocks, n_buckets;
    uint32_t n_touched;           /* blocks that have ever been used; the others take no memory yet */
    uint32_t free_blocks, n_free; /* list of free blocks that were in use before; number of all free ones */
    struct size_class classes[SIZE_CLASSES];
    uint64_t last_epoch;
    uint64_t n_steps;
    struct mk_hash_key key;
    pthread_mutex_t lock;
    /* n_buckets indexes of topics follow, then the blocks. */
    _Alignas(BLOCK) char rest[];
};

/* ---- Blocks ---- */

static uint32_t *buckets_of(struct duda_topic_log_memory *m)
{
    return (uint32_t *)(void *)m->rest;
}

static void *block_at(struct duda_topic_log_memory *m, uint32_t i)
{
    return m->rest + m->n_buckets * sizeof(uint32_t) + (size_t)(i - 1) * BLOCK;
}

static struct topic *topic_at(struct duda_topic_log_memory *m, uint32_t i)
{
    return block_at(m, i);
}

static struct message *message_at(struct duda_topic_log_memory *m, uint32_t i)
{
    return block_at(m, i);
}

static void free_block(struct duda_topic_log_memory *m, uint32_t i)
{
    ((struct text_block *)block_at(m, i))->more = m->free_blocks;
    m->free_blocks = i;
    m->n_free++;
}

/* Returns a free block; there must be one. */
static uint32_t take_block(struct duda_topic_log_memory *m)
{
    uint32_t i = m->free_blocks;
    m->n_free--;
    if (!i)
        return ++m->n_touched;
    m->free_blocks = ((struct text_block *)block_at(m, i))->more;
    return i;
}

static void empty_log(struct duda_topic_log_memory *m)
{
    memset(buckets_of(m), 0, m->n_buckets * sizeof(uint32_t));
    memset(m->classes, 0, sizeof m->classes);
    m->free_blocks = m->n_touched = 0;
    m->n_free = m->n_blocks;
}

/* ---- The lock ---- */

static int lock_log(struct duda_topic_log_memory *m)
{
    int e = duda_shm_mutex_lock(&m->lock);
    if (e == -EOWNERDEAD) {
        empty_log(m);
        e = 0;
    }
    return e;
}

static void unlock_log(struct duda_topic_log_memory *m)
{
    pthread_mutex_unlock(&m->lock);
}

int duda_topic_log_init(struct duda_topic_log *log, void *memory, size_t size)
{
    struct duda_topic_log_memory *m = memory;
    size_t n = (size - sizeof *m) / BLOCK, n_buckets = n / 8;
    if (!atomic_load(&m->is_ready)) {
        int e = duda_shm_mutex_init(&m->lock);
        if (e)
            return e;
        m->n_buckets = (uint32_t)(n_buckets / BUCKETS_PER_BLOCK + 1) * BUCKETS_PER_BLOCK;
        m->n_blocks = m->n_free = (uint32_t)(n - m->n_buckets / BUCKETS_PER_BLOCK);
        mk_random(&m->key, sizeof m->key);
        atomic_store(&m->is_ready, 1);
    }
    *log = (struct duda_topic_log){m, m->n_blocks};
    return 0;
}

/* ---- Topics ---- */

static uint32_t *find_topic(struct duda_topic_log_memory *m, mk_str name, uint64_t hash)
{
    uint32_t *at = &buckets_of(m)[hash % m->n_buckets];
    while (*at) {
        struct topic *t = topic_at(m, *at);
        if (t->hash == hash && mk_str_eq(mk_str_of(t->name, t->len), name))
            break;
        at = &t->next_in_bucket;
    }
    return at;
}

static struct size_class *class_of(struct duda_topic_log_memory *m, const struct topic *t)
{
    return &m->classes[31 - __builtin_clz(t->n_blocks)];
}

static void unlink_topic(struct duda_topic_log_memory *m, const struct topic *t)
{
    struct size_class *c = class_of(m, t);
    *(t->newer ? &topic_at(m, t->newer)->older : &c->newest) = t->older;
    *(t->older ? &topic_at(m, t->older)->newer : &c->oldest) = t->newer;
    c->n_blocks -= t->n_blocks;
}

static void link_as_newest(struct duda_topic_log_memory *m, uint32_t i)
{
    struct topic *t = topic_at(m, i);
    struct size_class *c = class_of(m, t);
    t->newer = 0;
    t->older = c->newest;
    *(c->newest ? &topic_at(m, c->newest)->newer : &c->oldest) = i;
    c->newest = i;
    c->n_blocks += t->n_blocks;
}

static void link_as_oldest(struct duda_topic_log_memory *m, uint32_t i)
{
    struct topic *t = topic_at(m, i);
    struct size_class *c = class_of(m, t);
    t->older = 0;
    t->newer = c->oldest;
    *(c->oldest ? &topic_at(m, c->oldest)->older : &c->newest) = i;
    c->oldest = i;
    c->n_blocks += t->n_blocks;
}

/* The topic becomes the oldest of its class: a topic that loses a message continues to do so until its class
 * is no longer the largest. */
static void drop_first_message(struct duda_topic_log_memory *m, uint32_t topic)
{
    struct topic *t = topic_at(m, topic);
    uint32_t i = t->first, n = 0;
    t->first = message_at(m, i)->next;
    if (!t->first)
        t->last = 0;
    t->n_messages--;
    for (; i; n++) {
        uint32_t more = message_at(m, i)->more;
        free_block(m, i);
        i = more;
    }
    unlink_topic(m, t);
    t->n_blocks -= n;
    link_as_oldest(m, topic);
}

static void drop_topic(struct duda_topic_log_memory *m, uint32_t i)
{
    struct topic *t = topic_at(m, i);
    *find_topic(m, mk_str_of(t->name, t->len), t->hash) = t->next_in_bucket;
    unlink_topic(m, t);
    free_block(m, i);
}

/* Frees blocks until `n` are free: drops the oldest message of the least recent topic in the class that uses
 * the most memory. `self` is the topic that needs the blocks; 0: a new one. It is never chosen when it has no
 * messages: it is then alone in its class and uses one block, and every other topic uses more. */
static void make_room(struct duda_topic_log_memory *m, uint32_t n, uint32_t self)
{
    while (m->n_free < n) {
        const struct size_class *largest = m->classes;
        for (size_t i = 1; i < SIZE_CLASSES; i++)
            if (m->classes[i].n_blocks > largest->n_blocks)
                largest = &m->classes[i];
        uint32_t topic = largest->oldest;
        drop_first_message(m, topic);
        if (!topic_at(m, topic)->first && topic != self)
            drop_topic(m, topic);
    }
}

/* Returns the topic; creates it if necessary. A new epoch is greater than all previous ones, so IDs of a
 * dropped topic are never reused. */
static uint32_t get_or_create_topic(struct duda_topic_log_memory *m, mk_str name, uint64_t now_ms)
{
    uint64_t hash = mk_hash(&m->key, name);
    uint32_t i = *find_topic(m, name, hash);
    if (i)
        return i;
    make_room(m, 1, 0);
    i = take_block(m);
    m->last_epoch = now_ms > m->last_epoch ? now_ms : m->last_epoch + 1;
    *topic_at(m, i) =
        (struct topic){.hash = hash, .epoch = m->last_epoch, .n_blocks = 1, .len = (unsigned char)name.len};
    memcpy(topic_at(m, i)->name, name.p, name.len);
    *find_topic(m, name, hash) = i;
    link_as_newest(m, i);
    return i;
}

/* ---- Messages ---- */

static uint32_t count_blocks(size_t len)
{
    return len <= TEXT_FIRST ? 1 : 1 + (uint32_t)((len - TEXT_FIRST + TEXT_MORE - 1) / TEXT_MORE);
}

static uint32_t write_message(struct duda_topic_log_memory *m, unsigned char kind, mk_str text,
                              uint64_t number, uint64_t now_ms)
{
    uint32_t first = take_block(m), *more;
    struct message *head = message_at(m, first);
    size_t n = text.len < TEXT_FIRST ? text.len : TEXT_FIRST;
    *head = (struct message){.len = (uint32_t)text.len, .number = number, .kind = kind};
    head->time_s = (uint32_t)(now_ms / 1000);
    memcpy(head->text, text.p, n);
    more = &head->more;
    for (text = mk_str_skip(text, n); text.len; text = mk_str_skip(text, n)) {
        *more = take_block(m);
        struct text_block *block = block_at(m, *more);
        n = text.len < TEXT_MORE ? text.len : TEXT_MORE;
        memcpy(block->text, text.p, n);
        more = &block->more;
    }
    *more = 0;
    return first;
}

static void read_message(struct duda_topic_log_memory *m, const struct message *head, struct mk_buf *out)
{
    size_t left = head->len, n = left < TEXT_FIRST ? left : TEXT_FIRST;
    mk_buf_add(out, mk_str_of(head->text, n));
    for (uint32_t i = head->more; i && (left -= n) > 0;) {
        const struct text_block *block = block_at(m, i);
        n = left < TEXT_MORE ? left : TEXT_MORE;
        mk_buf_add(out, mk_str_of(block->text, n));
        i = block->more;
    }
}

static uint64_t first_number(const struct topic *t)
{
    return t->last_number - t->n_messages + 1;
}

static uint64_t jump_target(uint64_t number)
{
    return number & (number - 1);
}

/* Returns the message with this number, which the topic must have. Each jump clears the lowest bit of a number,
 * so the number of steps is at most the square of its length in bits. */
static uint32_t find_message(struct duda_topic_log_memory *m, const struct topic *t, uint64_t number)
{
    uint32_t i = t->last;
    for (; message_at(m, i)->number != number; m->n_steps++)
        i = jump_target(message_at(m, i)->number) >= number ? message_at(m, i)->jump : message_at(m, i)->prev;
    return i;
}

static void link_message(struct duda_topic_log_memory *m, struct topic *t, uint32_t i)
{
    struct message *new = message_at(m, i);
    uint64_t target = jump_target(new->number);
    new->prev = t->last;
    bool has_target = t->last != 0 && target >= first_number(t);
    new->jump = has_target ? find_message(m, t, target) : 0;
    *(t->last ? &message_at(m, t->last)->next : &t->first) = i;
    t->last = i;
    t->last_number = new->number;
    t->n_messages++;
}

static bool is_too_old(const struct topic *t, const struct message *message, uint64_t now_ms)
{
    int32_t age_s = (int32_t)((uint32_t)(now_ms / 1000) - message->time_s);
    return t->keep_s && age_s > 0 && (uint32_t)age_s > t->keep_s;
}

/* A topic uses at most a quarter of the memory, or one message. */
static void append_message(struct duda_topic_log_memory *m, uint32_t i,
                           const struct duda_topic_log_rule *rule, unsigned char kind, mk_str text,
                           uint64_t now_ms)
{
    struct topic *t = topic_at(m, i);
    uint32_t n = count_blocks(text.len), share = m->n_blocks / 4;
    t->keep_s = rule->keep_s;
    while (t->first && (t->n_messages >= rule->keep || t->n_blocks + n > share ||
                        is_too_old(t, message_at(m, t->first), now_ms)))
        drop_first_message(m, i);
    unlink_topic(m, t);
    link_as_newest(m, i);
    make_room(m, n, i);
    link_message(m, t, write_message(m, kind, text, t->last_number + 1, now_ms));
    unlink_topic(m, t);
    t->n_blocks += n;
    link_as_newest(m, i);
}

int duda_topic_log_append(const struct duda_topic_log *log, mk_str topic,
                          const struct duda_topic_log_rule *rule, unsigned char kind, mk_str text,
                          uint64_t now_ms, struct duda_topic_id *prev, struct duda_topic_id *id)
{
    struct duda_topic_log_memory *m = log->memory;
    if (topic.len > NAME_MAX_LEN || !rule->keep || count_blocks(text.len) >= log->n_blocks)
        return -EMSGSIZE;
    int e = lock_log(m);
    if (e)
        return e;
    uint32_t i = get_or_create_topic(m, topic, now_ms);
    const struct topic *t = topic_at(m, i);
    *prev = t->last_number ? (struct duda_topic_id){t->epoch, t->last_number} : (struct duda_topic_id){0};
    append_message(m, i, rule, kind, text, now_ms);
    *id = (struct duda_topic_id){t->epoch, t->last_number};
    unlock_log(m);
    return 0;
}

/* Drops messages that are too old. The last message remains, because its number continues the topic. */
static void drop_old_messages(struct duda_topic_log_memory *m, uint32_t i, uint64_t now_ms)
{
    const struct topic *t = topic_at(m, i);
    while (t->n_messages > 1 && is_too_old(t, message_at(m, t->first), now_ms))
        drop_first_message(m, i);
}

/* Returns the first message after the ID; 0: none. */
static uint32_t find_message_after(struct duda_topic_log_memory *m, const struct topic *t,
                                   const struct duda_topic_id *after, bool *has_gap)
{
    bool is_known = after->epoch == t->epoch && after->number <= t->last_number;
    uint64_t number = is_known ? after->number : 0, first = first_number(t);
    *has_gap = !duda_topic_id_is_none(after) && (!is_known || number + 1 < first);
    if (number == t->last_number)
        return 0;
    return number + 1 <= first ? t->first : find_message(m, t, number + 1);
}

static int read_after(struct duda_topic_log_memory *m, mk_str topic, const struct duda_topic_id *after,
                      uint64_t now_ms, struct mk_buf *out, unsigned char *kind, struct duda_topic_id *id,
                      bool *has_gap)
{
    uint32_t i = *find_topic(m, topic, mk_hash(&m->key, topic));
    *id = (struct duda_topic_id){0};
    *has_gap = !i && !duda_topic_id_is_none(after);
    if (!i)
        return 0;
    drop_old_messages(m, i, now_ms);
    const struct topic *t = topic_at(m, i);
    *id = (struct duda_topic_id){t->epoch, t->last_number};
    i = find_message_after(m, t, after, has_gap);
    const struct message *found = i ? message_at(m, i) : NULL;
    if (!found || is_too_old(t, found, now_ms))
        return 0;
    id->number = found->number;
    *kind = found->kind;
    read_message(m, found, out);
    return 1;
}

int duda_topic_log_read(const struct duda_topic_log *log, mk_str topic, const struct duda_topic_id *after,
                        uint64_t now_ms, struct mk_buf *out, unsigned char *kind, struct duda_topic_id *id,
                        bool *has_gap)
{
    int e = lock_log(log->memory);
    if (e)
        return e;
    int result = read_after(log->memory, topic, after, now_ms, out, kind, id, has_gap);
    unlock_log(log->memory);
    return result;
}

int duda_topic_log_last(const struct duda_topic_log *log, mk_str topic, struct duda_topic_id *id)
{
    struct duda_topic_log_memory *m = log->memory;
    int e = lock_log(m);
    if (e)
        return e;
    uint32_t i = *find_topic(m, topic, mk_hash(&m->key, topic));
    *id = i ? (struct duda_topic_id){topic_at(m, i)->epoch, topic_at(m, i)->last_number}
            : (struct duda_topic_id){0};
    unlock_log(m);
    return 0;
}

uint64_t duda_topic_log_steps(const struct duda_topic_log *log)
{
    return log->memory->n_steps;
}
