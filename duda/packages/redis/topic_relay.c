/* SPDX-License-Identifier: Apache-2.0 */
/* Each worker has its own subscription to the channel. It ignores messages from workers of its machine,
 * because it has already received them. */
#include "topic_relay.h"

#include <duda/memory.h>
#include <duda/topic.h>
#include <errno.h>
#include <monkey/clock.h>
#include <monkey/mem.h>
#include <monkey/text.h>

#include "key_slot.h"
#include "redis.h"

enum { ORIGIN = sizeof(uint64_t), ONE_DAY_S = 86400 };

/* The origin of kept messages: every worker delivers them, even the publisher. */
static const char from_all[ORIGIN];

struct redis_topic_relay {
    struct mk_worker *worker;
    struct redis_command_queue *queue;
    struct duda_redis *redis;
    struct duda_redis_sub sub;
    struct duda_topic_relay relay;
};

static mk_str relay_channel(const struct redis_topic_relay *r)
{
    return mk_str_of(r->sub.channel, r->sub.channel_len);
}

/* Queues a PUBLISH command like those of handlers, and ignores its reply. */
static int relay_publish(void *ctx, mk_str message)
{
    struct redis_topic_relay *r = ctx;
    struct redis_batch *batch;
    struct mk_buf text = mk_buf_growing(ORIGIN + DUDA_TOPIC_MESSAGE_MAX + DUDA_TOPIC_NAME_MAX + 2);
    mk_buf_add(&text, mk_str_of((const char *)r->queue->conn.settings->origin, ORIGIN));
    mk_buf_add(&text, message);
    int e = text.failed ? -ENOMEM : redis_batch_begin(r->queue, NULL, 1, &batch);
    if (!e) {
        const mk_str parts[] = {MK_STR("PUBLISH"), relay_channel(r), mk_buf_str(&text)};
        redis_command_format(&r->queue->bytes, parts, 3);
        e = redis_batch_enqueue(r->queue, batch);
    }
    mk_buf_free(&text);
    return e == -EBUSY || e == -ECONNREFUSED ? -EAGAIN : e;
}

/* ---- Kept messages: a stream for each topic ---- */

/* A message cannot be older than the clock of Redis, which counts from 1970. */
static uint32_t clamp_keep_s(uint32_t keep_s)
{
    return keep_s < DUDA_TOPIC_KEEP_S_MAX ? keep_s : DUDA_TOPIC_KEEP_S_MAX;
}

static mk_str stream_key(struct duda_ctx *d, const struct redis_topic_relay *r, mk_str topic)
{
    return duda_sprintf(d, REDIS_RESERVED_PREFIX "kept:%.*s:%.*s",
                        MK_STR_ARG(r->queue->conn.settings->topic_relay), MK_STR_ARG(topic));
}

/* Each entry contains the ID of the entry before it, which shows whether entries in between were trimmed. The
 * entry is published in the same script, so messages arrive in the order of their IDs. */
static int publish_kept(struct duda_ctx *d, void *ctx, mk_str topic, enum mk_websocket_kind kind, mk_str text,
                        uint32_t keep, uint32_t keep_s)
{
    static struct duda_redis_script add = {
        .source =
            "local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1) "
            "local prev = last[1] and last[1][1] or '0-0' "
            "local id = redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[1], '*', 'p', prev, 'k', ARGV[2], 't', "
            "ARGV[3]) "
            "redis.call('EXPIRE', KEYS[1], ARGV[7]) "
            "if ARGV[8] ~= '' then "
            "local now = redis.call('TIME') "
            "for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', string.format('%.0f', (now[1] - ARGV[8]) "
            "* 1000 - 1))) do "
            "redis.call('XDEL', KEYS[1], e[1]) end end "
            "redis.call('PUBLISH', ARGV[4], ARGV[5] .. ARGV[2] .. ' ' .. prev .. ' ' .. id .. ' ' .. "
            "#ARGV[6] .. ' ' .. ARGV[6] .. ARGV[3]) "
            "return id"};
    const struct redis_topic_relay *r = ctx;
    struct duda_redis_reply reply;
    keep_s = clamp_keep_s(keep_s);
    const mk_str arguments[] = {stream_key(d, r, topic),
                                duda_sprintf(d, "%u", (unsigned)keep),
                                kind == MK_WEBSOCKET_BINARY ? MK_STR("b") : MK_STR("t"),
                                text,
                                relay_channel(r),
                                mk_str_of(from_all, sizeof from_all),
                                topic,
                                duda_sprintf(d, "%u", keep_s > ONE_DAY_S ? (unsigned)keep_s : ONE_DAY_S),
                                keep_s ? duda_sprintf(d, "%u", (unsigned)keep_s) : MK_STR("")};
    if (!arguments[0].p || !arguments[1].p || !arguments[7].p || !arguments[8].p)
        return -ENOMEM;
    return redis_eval_replicated(d, r->redis, &reply, &add, 1, arguments, MK_LEN(arguments), NULL);
}

static mk_str entry_field(const struct duda_redis_reply *entry, size_t i)
{
    const struct duda_redis_reply *fields = entry->n == 2 ? &entry->items[1] : NULL;
    return fields && i < fields->n ? fields->items[i].text : MK_STR_NULL;
}

/* Returns 1 and the entry, 0 (none), or an error. */
static int first_entry(const struct duda_redis_reply *reply, struct duda_redis_reply *entry)
{
    if (reply->type == DUDA_REDIS_ERROR)
        return -EREMOTEIO;
    if (!reply->n)
        return 0;
    *entry = reply->items[0];
    return entry->n == 2 ? 1 : -EPROTO;
}

static int last_kept(struct duda_ctx *d, void *ctx, mk_str topic, mk_str *id)
{
    const struct redis_topic_relay *r = ctx;
    struct duda_redis_reply reply, entry;
    const mk_str last[] = {MK_STR("XREVRANGE"), stream_key(d, r, topic), MK_STR("+"),
                           MK_STR("-"),         MK_STR("COUNT"),         MK_STR("1")};
    int e = last[1].p ? redis_do_internal(d, r->redis, &reply, last, MK_LEN(last)) : -ENOMEM;
    e = e ? e : first_entry(&reply, &entry);
    *id = e == 1 ? entry.items[0].text : MK_STR("0");
    return e < 0 ? e : 0;
}

/* Returns the beginning of the range after `after` without entries older than `keep_s` seconds. The IDs begin
 * with the time in milliseconds. */
static mk_str first_id(struct duda_ctx *d, mk_str after, uint32_t keep_s)
{
    uint64_t now_ms = mk_clock_unix_ms(), keep_ms = (uint64_t)clamp_keep_s(keep_s) * 1000;
    uint64_t oldest_ms = now_ms > keep_ms ? now_ms - keep_ms : 0, after_ms = 0;
    mk_str rest = after;
    if (keep_s && (!mk_num_parse(mk_str_cut(&rest, '-'), &after_ms) || after_ms < oldest_ms))
        return duda_sprintf(d, "%llu", (unsigned long long)oldest_ms);
    return duda_sprintf(d, "(%.*s", MK_STR_ARG(after));
}

/* Reads the last entry of the stream first, and then the first entry after `after`. In this order, if no
 * entry follows, the last one is not newer than `after`, even if another client adds an entry between the two
 * commands. */
static int read_kept(struct duda_ctx *d, void *ctx, mk_str topic, mk_str after, uint32_t keep_s,
                     enum mk_websocket_kind *kind, mk_str *text, mk_str *prev, mk_str *id)
{
    const struct redis_topic_relay *r = ctx;
    struct duda_redis_reply replies[2], entry;
    mk_str key = stream_key(d, r, topic), from = first_id(d, after, keep_s);
    const mk_str last[] = {MK_STR("XREVRANGE"), key, MK_STR("+"), MK_STR("-"), MK_STR("COUNT"), MK_STR("1")},
                 next[] = {MK_STR("XRANGE"), key, from, MK_STR("+"), MK_STR("COUNT"), MK_STR("1")};
    const struct duda_redis_command commands[] = {{last, MK_LEN(last)}, {next, MK_LEN(next)}};
    if (!key.p || !from.p)
        return -ENOMEM;
    int e = redis_pipeline_internal(d, r->redis, commands, MK_LEN(commands), replies);
    e = e ? e : first_entry(&replies[1], &entry);
    if (e == 1) {
        *prev = entry_field(&entry, 1);
        *kind = mk_str_eq(entry_field(&entry, 3), MK_STR("b")) ? MK_WEBSOCKET_BINARY : MK_WEBSOCKET_TEXT;
        *text = entry_field(&entry, 5);
        *id = entry.items[0].text;
        return prev->p && text->p ? 1 : -EPROTO;
    }
    int found = e ? e : first_entry(&replies[0], &entry);
    *id = found == 1 ? entry.items[0].text : MK_STR("0");
    return found < 0 ? found : 0;
}

/* ---- Subscribers: a hash for each topic, with a field for each machine ---- */

/* The hash tag puts the keys of all topics into one slot of a cluster, so that one script can change them. */
static mk_str subscribers_key(struct duda_ctx *d, const struct redis_topic_relay *r, mk_str topic)
{
    return duda_sprintf(d, REDIS_RESERVED_PREFIX "subscribers:{%.*s}:%.*s",
                        MK_STR_ARG(r->queue->conn.settings->topic_relay), MK_STR_ARG(topic));
}

static mk_str origin_of(const struct redis_topic_relay *r)
{
    return mk_str_of((const char *)r->queue->conn.settings->origin, ORIGIN);
}

/* A field is the number of subscribers, a space, and the time in seconds at which the machine is forgotten.
 * Also deletes the fields of machines that are forgotten. */
static int announce_subscribers(struct duda_ctx *d, void *ctx, const struct duda_topic_count *counts,
                                size_t n)
{
    static struct duda_redis_script announce = {
        .source = "local now = redis.call('TIME')[1] + 0 "
                  "for i, key in ipairs(KEYS) do "
                  "local n = ARGV[i + 1] "
                  "if n == '0' then redis.call('HDEL', key, ARGV[1]) "
                  "else redis.call('HSET', key, ARGV[1], n .. ' ' .. string.format('%.0f', now + 30)) end "
                  "local all = redis.call('HGETALL', key) "
                  "for k = 1, #all, 2 do "
                  "local ends = all[k + 1]:match('^%d+ (%d+)$') "
                  "if not ends or ends + 0 <= now then redis.call('HDEL', key, all[k]) end end "
                  "redis.call('EXPIRE', key, 60) end "
                  "return 0"};
    const struct redis_topic_relay *r = ctx;
    struct duda_redis_reply reply;
    mk_str *arguments = duda_alloc(d, (2 * n + 1) * sizeof *arguments);
    if (!arguments)
        return -ENOMEM;
    arguments[n] = origin_of(r);
    for (size_t i = 0; i < n; i++) {
        arguments[i] = subscribers_key(d, r, counts[i].topic);
        arguments[n + 1 + i] = duda_sprintf(d, "%llu", (unsigned long long)counts[i].n);
        if (!arguments[i].p || !arguments[n + 1 + i].p)
            return -ENOMEM;
    }
    return redis_eval_replicated(d, r->redis, &reply, &announce, n, arguments, 2 * n + 1, NULL);
}

static int count_subscribers(struct duda_ctx *d, void *ctx, mk_str topic, uint64_t *n)
{
    static struct duda_redis_script count = {
        .source = "local sum, now = 0, redis.call('TIME')[1] + 0 "
                  "local all = redis.call('HGETALL', KEYS[1]) "
                  "for i = 1, #all, 2 do "
                  "local n, ends = all[i + 1]:match('^(%d+) (%d+)$') "
                  "if all[i] ~= ARGV[1] and n and ends + 0 > now then sum = sum + n end end "
                  "return sum"};
    const struct redis_topic_relay *r = ctx;
    struct duda_redis_reply reply;
    const mk_str arguments[] = {subscribers_key(d, r, topic), origin_of(r)};
    int e = arguments[0].p
                ? redis_eval_replicated(d, r->redis, &reply, &count, 1, arguments, MK_LEN(arguments), NULL)
                : -ENOMEM;
    *n = !e && reply.number > 0 ? (uint64_t)reply.number : 0;
    return e;
}

/* Delivers a message of publish_kept(). It contains the kind, the previous ID, its ID, the length of the
 * topic, the topic and the text. */
static void deliver_kept(struct redis_topic_relay *r, mk_str message)
{
    mk_str rest = message, kind = mk_str_cut(&rest, ' '), prev = mk_str_cut(&rest, ' '),
           id = mk_str_cut(&rest, ' '), len = mk_str_cut(&rest, ' ');
    size_t name_len = 0;
    for (size_t i = 0; i < len.len && name_len < rest.len; i++)
        name_len = 10 * name_len + (unsigned char)(len.p[i] - '0');
    if (rest.p && name_len <= rest.len)
        duda_topic_deliver_kept(r->worker, mk_str_first(rest, name_len),
                                mk_str_eq(kind, MK_STR("b")) ? MK_WEBSOCKET_BINARY : MK_WEBSOCKET_TEXT,
                                mk_str_skip(rest, name_len), prev, id);
}

static void on_active(void *ctx)
{
    duda_topic_resync(((struct redis_topic_relay *)ctx)->worker);
}

static void on_message(void *ctx, mk_str text)
{
    struct redis_topic_relay *r = ctx;
    if (text.len > ORIGIN && memcmp(text.p, from_all, ORIGIN) == 0)
        deliver_kept(r, mk_str_skip(text, ORIGIN));
    else if (text.len > ORIGIN && memcmp(text.p, r->queue->conn.settings->origin, ORIGIN) != 0)
        duda_topic_deliver(r->worker, mk_str_skip(text, ORIGIN));
}

struct redis_topic_relay *redis_topic_relay_new(struct mk_worker *w, struct redis_command_queue *q,
                                                struct redis_pubsub *h, struct duda_redis *redis)
{
    struct redis_topic_relay *r = mk_mem_zalloc(1, sizeof *r);
    if (!r)
        return NULL;
    struct mk_buf name = mk_buf_fixed(r->sub.channel, sizeof r->sub.channel);
    mk_buf_addf(&name, REDIS_RESERVED_PREFIX "topics:%.*s", MK_STR_ARG(q->conn.settings->topic_relay));
    r->worker = w;
    r->queue = q;
    r->sub.channel_len = name.len;
    r->sub.on_message = on_message;
    r->sub.ctx = r;
    r->redis = redis;
    r->sub.on_active = on_active;
    r->relay = (struct duda_topic_relay){.publish = relay_publish,
                                         .ctx = r,
                                         .publish_kept = publish_kept,
                                         .read_kept = read_kept,
                                         .last_kept = last_kept,
                                         .announce_subscribers = announce_subscribers,
                                         .count_subscribers = count_subscribers};
    if (duda_topic_set_relay(w, &r->relay)) {
        mk_mem_free(r);
        return NULL;
    }
    redis_pubsub_subscribe(h, &r->sub);
    return r;
}

void redis_topic_relay_free(struct redis_topic_relay *r)
{
    if (!r)
        return;
    (void)duda_topic_set_relay(r->worker, NULL);
    redis_pubsub_unsubscribe(&r->sub);
    mk_mem_free(r);
}
