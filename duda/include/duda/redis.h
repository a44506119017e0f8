/* SPDX-License-Identifier: Apache-2.0 */
/* Redis: one connection a worker, over which the commands of all handlers go together. */
#ifndef DUDA_REDIS_H
#define DUDA_REDIS_H

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-redis.so: `#define DUDA_USE "duda-redis",` ahead of <duda.h>, and
 * link with `pkg-config --libs duda-redis`. The configuration says where the server is:
 *
 *     [REDIS]
 *         Server 127.0.0.1:6379
 *
 * `Sentinel NAME` says that Server names Sentinels: the worker asks them for the master, and follows it.
 * `Cluster on` says that it names nodes of a Redis Cluster: each command goes to the node that has its keys.
 * The service is the same.
 *
 * Replies may come in RESP2 or RESP3. A value of RESP3 becomes what RESP2 has in its place: a map is a list of names and
 * values in turn, a set a list, a double or a big number a text, a boolean the number 1 or 0, a verbatim
 * text a text; attributes are left out.
 *
 * A master that becomes a replica keeps its connections, and refuses what is written. The first refusal makes
 * the worker reconnect, so that it reaches the new master if the address leads there by now.
 *
 * The commands of all handlers of a turn of the loop are sent with one system call, and their replies read
 * with one.
 */

/** Limits: [REDIS] sections; commands of one call; parts of a command; bytes of all their parts. */
enum { DUDA_REDIS_SERVERS_MAX = 16, DUDA_REDIS_PIPELINE_MAX = 1000, DUDA_REDIS_PARTS_MAX = 10000 };
#define DUDA_REDIS_BYTES_MAX ((size_t)64 << 20)

/** A server: one [REDIS] section, in one worker. */
struct duda_redis;

/** The server of that Name; NULL names the first section. Valid as long as the worker. NULL: there is none. That is an error in the log, and functions
 * that are given NULL answer -ENODEV, which is status 503. */
MK_API struct duda_redis *duda_redis_find(struct duda_ctx *d, const char *name);

/** What a reply is. */
enum duda_redis_type {
    DUDA_REDIS_NIL,    /**< there is nothing */
    DUDA_REDIS_TEXT,   /**< a string: text */
    DUDA_REDIS_STATUS, /**< a short word such as OK: text */
    DUDA_REDIS_NUMBER, /**< number */
    DUDA_REDIS_LIST,   /**< n items */
    DUDA_REDIS_ERROR   /**< the server's complaint: text, such as "WRONGTYPE ..." */
};

/** A reply; texts and items live until the handler returns. A NUL follows each text. */
struct duda_redis_reply {
    enum duda_redis_type type;
    mk_str text;
    int64_t number;
    size_t n;
    const struct duda_redis_reply *items;
};

/** A command: its name and its arguments, any bytes. They are sent as they are: nothing in them can become
 * another command or argument. */
struct duda_redis_command {
    const mk_str *parts;
    size_t n;
};

/**
 * Sends a command and waits for its reply.
 *
 *     struct duda_redis_reply reply;
 *     int e = duda_redis(d, redis, &reply, MK_STR("GET"), key);
 *     if (e)
 *         return e;
 *     if (reply.type == DUDA_REDIS_NIL)
 *         return 404;
 *
 * 0; -EREMOTEIO: the server refuses the command, reply->text says why; -ENOSPC: it does, for its memory is
 * full or it cannot save; -EAGAIN: it does for now (it loads its data, or runs a long script, or its cluster
 * is down); -ETIMEDOUT: no reply within Timeout;
 * -ECONNRESET: the connection was lost behind the command, which may have been done or not; -ECONNREFUSED and
 * other errors of connect(2): the server cannot be reached, the command was not sent; -ENOKEY: the server
 * refuses our user or password or wants one, or we may not use its socket; -EPROTO: it does not speak Redis'
 * protocol; -EBUSY: more than MaxQueue commands wait; -EMSGSIZE: a command or reply is too large;
 * -EOPNOTSUPP: a command that would change the connection or block it, which belongs to all handlers (SELECT,
 * MULTI, SUBSCRIBE, BLPOP and others); -EXDEV: the keys belong to several nodes of a cluster, reply->text
 * names two of them; -EPERM: a part begins with `!duda:`, as what Duda itself keeps there; -EINVAL; -ENOMEM;
 * or what waits answer. On all these errors reply->text says what happened where.
 */
#define duda_redis(d, r, reply, ...)                                                                         \
    duda_redis_do(d, r, reply, (const mk_str[]){__VA_ARGS__}, MK_LEN(((const mk_str[]){__VA_ARGS__})))
/** The same with an array of parts. */
MK_API int duda_redis_do(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                         const mk_str *parts, size_t n) MK_API_MUST_USE;

/**
 * A command that may block: BLPOP, XREAD and XREADGROUP with BLOCK, and the like. It has a connection of
 * its own as long as it waits. `ms` is how long it may block, as its own argument says: the reply is waited
 * for so much longer; 0: without limit. Results as above.
 *
 *     struct duda_redis_reply reply;
 *     const mk_str parts[] = {MK_STR("XREAD"), MK_STR("BLOCK"), MK_STR("5000"), MK_STR("STREAMS"), key,
 * last}; int e = duda_redis_blocking(d, redis, &reply, 5000, parts, MK_LEN(parts));
 */
MK_API int duda_redis_blocking(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                               uint32_t ms, const mk_str *parts, size_t n) MK_API_MUST_USE;

/**
 * A command that writes, and is done when so many replicas have it, too: what is acknowledged then survives
 * the end of the master. `ms` is how long to wait for them; 0: without limit. Results as above, or -ENOLINK:
 * it is written, but fewer replicas have it.
 */
MK_API int duda_redis_write_replicated(struct duda_ctx *d, struct duda_redis *r,
                                       struct duda_redis_reply *reply, unsigned replicas, uint32_t ms,
                                       const mk_str *parts, size_t n) MK_API_MUST_USE;

/** Sends n commands at once and waits for their replies; those that the server refuses have the type
 * DUDA_REDIS_ERROR, and do not stop the others. Errors as above, but for those of a refusal. */
MK_API int duda_redis_pipeline(struct duda_ctx *d, struct duda_redis *r,
                               const struct duda_redis_command *commands, size_t n,
                               struct duda_redis_reply *replies) MK_API_MUST_USE;

/** The same as one transaction (MULTI, EXEC): no command of another client comes in between, and none is done
 * if the server cannot queue one of them (-EREMOTEIO, and the first reply says why). In a cluster, its keys
 * must be of one slot. For conditions, use a script. */
MK_API int duda_redis_transaction(struct duda_ctx *d, struct duda_redis *r,
                                  const struct duda_redis_command *commands, size_t n,
                                  struct duda_redis_reply *replies) MK_API_MUST_USE;

/** A script in Lua; a static variable: `static struct duda_redis_script take = {.source = "return ..."}`. */
struct duda_redis_script {
    const char *source;
    char sha[41]; /**< its own */
};
/** Runs a script; the first n_keys of the n arguments are KEYS, the others ARGV. The source is sent to each
 * server once. Errors as of duda_redis(). */
MK_API int duda_redis_eval(struct duda_ctx *d, struct duda_redis *r, struct duda_redis_reply *reply,
                           struct duda_redis_script *script, size_t n_keys, const mk_str *arguments,
                           size_t n) MK_API_MUST_USE;

/* ---- Messages ---- */

/** Limits: bytes of a channel's name, and messages that wait for one subscriber. */
enum { DUDA_REDIS_CHANNEL_MAX = 256, DUDA_REDIS_MESSAGES_MAX = 256 };

/** A subscription to a channel, of one handler. It ends with the handler. */
struct duda_redis_sub;

/**
 * Subscribes; waits until the server has confirmed. *out lives until the handler returns, or
 * duda_redis_unsubscribe(). All subscriptions of a worker share one connection. 0, -EINVAL (the name is empty or
 * too long), or as above.
 *
 *     struct duda_redis_sub *sub;
 *     mk_str message;
 *     int e = duda_redis_subscribe(d, redis, MK_STR("news"), &sub);
 *     while (!e && !(e = duda_redis_receive(d, sub, 0, &message)))
 *         e = duda_write(d, message);
 */
MK_API int duda_redis_subscribe(struct duda_ctx *d, struct duda_redis *r, mk_str channel,
                                struct duda_redis_sub **out) MK_API_MUST_USE;
/**
 * Waits for the next message, which is valid until the next call; at most `ms` milliseconds (0: without
 * limit), then -EAGAIN. -EOVERFLOW: messages were lost, because more than DUDA_REDIS_MESSAGES_MAX waited;
 * -ECONNRESET: the connection was lost, and maybe messages with it. After both, go on receiving: the
 * subscription is kept, and comes back with the server. Publish with duda_redis(d, r, &reply,
 * MK_STR("PUBLISH"), channel, message).
 */
MK_API int duda_redis_receive(struct duda_ctx *d, struct duda_redis_sub *sub, uint32_t ms,
                              mk_str *message) MK_API_MUST_USE;
/** Ends a subscription before the handler does. */
MK_API void duda_redis_unsubscribe(struct duda_redis_sub *sub);

#ifdef __cplusplus
}
#endif

#endif
