/* SPDX-License-Identifier: Apache-2.0 */
/* Redis client: one connection per worker, which pipelines the commands of all handlers. */
#ifndef DUDA_REDIS_H
#define DUDA_REDIS_H

/* A function and a struct in this header have the same name, which is valid C++, but some compilers warn
 * about it. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <duda/service.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions are in monkey-duda-redis.so: `#define DUDA_USE "duda-redis"` before including <duda.h>, and
 * link with `pkg-config --libs duda-redis`. The configuration names the server:
 *
 *     [REDIS]
 *         Server 127.0.0.1:6379
 *
 * With `Sentinel NAME`, Server lists Sentinels: the worker asks them for the master, and follows failovers.
 * With `Cluster on`, Server lists nodes of a Redis Cluster: each command goes to the node that holds its
 * keys. The code of the service stays the same.
 *
 * Replies may use RESP2 or RESP3. A RESP3 value becomes its RESP2 equivalent: maps become lists of
 * alternating keys and values; sets become lists; doubles, big numbers and verbatim strings become strings;
 * booleans become the number 1 or 0. Attributes are dropped.
 *
 * A master that becomes a replica keeps its connections and rejects writes. The first rejected write makes
 * the worker reconnect; the worker then reaches the new master if the address already resolves to that
 * server.
 *
 * The worker sends the commands of all handlers of one loop iteration with a single system call, and reads
 * their replies with another.
 */

/** Limits: [REDIS] sections; commands in one call; parts of a command; total bytes of their parts. */
enum { DUDA_REDIS_SERVERS_MAX = 16, DUDA_REDIS_PIPELINE_MAX = 1000, DUDA_REDIS_ARGS_MAX = 10000 };
#define DUDA_REDIS_SIZE_MAX (MK_API_CAST(size_t, 64) << 20)

/** A server: one [REDIS] section, in one worker. */
struct duda_redis;

/**
 * Returns the server with this Name; NULL selects the only section or, if there are several, the one named
 * "main". The server is valid for the lifetime of the worker. Returns NULL, and logs an error, if there is
 * no such section; functions called with NULL return -ENODEV, which becomes status 503.
 *
 *     struct duda_redis_reply reply;
 *     int e = duda_redis(d, duda_redis_find(d, NULL), &reply, MK_STR("GET"), key);
 */
MK_API struct duda_redis *duda_redis_find(struct duda_ctx *d, const char *name);
/** Like the function above, but without a handler: call it in a DUDA_START() function to detect a missing
 * section early. */
MK_API struct duda_redis *duda_redis_of(struct mk_worker *worker, const char *name);

/** The type of a reply. */
enum duda_redis_type {
    DUDA_REDIS_NIL,    /**< no value */
    DUDA_REDIS_TEXT,   /**< a bulk string, in `text` */
    DUDA_REDIS_STATUS, /**< a simple string such as OK, in `text` */
    DUDA_REDIS_NUMBER, /**< an integer, in `number` */
    DUDA_REDIS_LIST,   /**< an array of `n` replies, in `items` */
    DUDA_REDIS_ERROR   /**< an error such as "WRONGTYPE ...", in `text` */
};

/** A reply. Strings and items live until the handler returns; strings are NUL-terminated. */
struct duda_redis_reply {
    enum duda_redis_type type;
    mk_str text;
    int64_t number;
    size_t n;
    const struct duda_redis_reply *items;
    uint64_t reserved[1]; /**< for later releases */
};

/** A command: its name and its arguments, which may be any bytes. They are sent length-prefixed, so no
 * argument can inject another command or argument. */
struct duda_redis_command {
    const mk_str *args;
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
 * Returns 0; -EREMOTEIO: the server rejected the command; -ENOSPC: the server rejected it because its memory
 * is full or it cannot save to disk; -EAGAIN: the server rejected it temporarily (it is loading its data or
 * running a long script, or its cluster is down); -ETIMEDOUT: no reply within Timeout; -ECONNRESET: the
 * connection was lost after the command was sent, so the command may or may not have run; -ECONNREFUSED and
 * other errors of connect(2): the server is unreachable, and the command was not sent; -ENOKEY: the server
 * requires a user name or password, or rejected the configured one; or the worker has no permission to use
 * the server's socket; -EPROTO: the server does not speak the Redis protocol; -EBUSY: more than MaxQueue
 * commands are queued; -EMSGSIZE: a command or reply is too large; -EOPNOTSUPP: a command that would block
 * the shared connection or change its state (SELECT, MULTI, SUBSCRIBE, BLPOP and others); -EXDEV: the keys
 * belong to several nodes of a cluster (reply->text names two of them); -EPERM: a part begins with `!duda:`,
 * the prefix of Duda's own keys; -EINVAL; -ENOMEM; or the error of a failed wait. On all errors, reply->text
 * describes the error, for -EREMOTEIO in the server's words.
 */
#ifndef __cplusplus
#define duda_redis(d, redis, reply, ...)                                                                     \
    duda_redis_do(d, redis, reply, (const mk_str[]){__VA_ARGS__}, MK_LEN(((const mk_str[]){__VA_ARGS__})))
#endif
/**
 * Sends a command given as an array of parts.
 *
 *     struct duda_redis_reply reply;
 *     const mk_str args[] = {MK_STR("LPUSH"), key, last};
 *     int e = duda_redis_do(d, redis, &reply, args, MK_LEN(args));
 */
MK_API int duda_redis_do(struct duda_ctx *d, struct duda_redis *redis, struct duda_redis_reply *reply,
                         const mk_str *args, size_t n) MK_API_MUST_USE;

/**
 * Sends a command that may block: BLPOP, XREAD and XREADGROUP with BLOCK, and the like. The command uses its
 * own connection while it waits. Set `timeout_ms` to the longest time for which the arguments allow the
 * command to block: the timeout of the reply is extended by `timeout_ms` (MK_FOREVER: no timeout). Results as
 * above.
 *
 *     struct duda_redis_reply reply;
 *     const mk_str args[] = {MK_STR("XREAD"), MK_STR("BLOCK"), MK_STR("5000"), MK_STR("STREAMS"),
 *                             key, last};
 *     int e = duda_redis_blocking(d, redis, &reply, 5000, args, MK_LEN(args));
 */
MK_API int duda_redis_blocking(struct duda_ctx *d, struct duda_redis *redis, struct duda_redis_reply *reply,
                               uint32_t timeout_ms, const mk_str *args, size_t n) MK_API_MUST_USE;

/**
 * Sends a write command and waits until `replicas` replicas have received it; an acknowledged write then
 * survives the loss of the master. `timeout_ms` limits the wait for the replicas; MK_FOREVER: no limit.
 * Results as above, or -ENOLINK: the write succeeded, but fewer replicas have it.
 */
MK_API int duda_redis_write_replicated(struct duda_ctx *d, struct duda_redis *redis,
                                       struct duda_redis_reply *reply, unsigned replicas, uint32_t timeout_ms,
                                       const mk_str *args, size_t n) MK_API_MUST_USE;

/**
 * Sends n commands as one pipeline and waits for their replies. A command that the server rejects gets a
 * reply of type DUDA_REDIS_ERROR and does not stop the others. Returns 0, even if the server rejects
 * commands, so never -EREMOTEIO or -ENOSPC; other errors as above.
 *
 *     const mk_str incr[] = {MK_STR("INCR"), key}, expire[] = {MK_STR("EXPIRE"), key, MK_STR("60")};
 *     const struct duda_redis_command commands[] = {{incr, MK_LEN(incr)}, {expire, MK_LEN(expire)}};
 *     struct duda_redis_reply replies[2];
 *     int e = duda_redis_pipeline(d, redis, commands, 2, replies);
 */
MK_API int duda_redis_pipeline(struct duda_ctx *d, struct duda_redis *redis,
                               const struct duda_redis_command *commands, size_t n,
                               struct duda_redis_reply *replies) MK_API_MUST_USE;

/**
 * Runs the commands as one transaction (MULTI, EXEC): no command of another client runs in between. If the
 * server cannot queue one of them, none runs (-EREMOTEIO, and the first reply says why). In a cluster, all
 * keys must be in one hash slot. For conditional updates, use a script.
 *
 *     const mk_str take[] = {MK_STR("DECR"), key}, note[] = {MK_STR("RPUSH"), MK_STR("sold"), last};
 *     const struct duda_redis_command commands[] = {{take, MK_LEN(take)}, {note, MK_LEN(note)}};
 *     struct duda_redis_reply replies[2];
 *     int e = duda_redis_transaction(d, redis, commands, 2, replies); // both, or none of them
 */
MK_API int duda_redis_transaction(struct duda_ctx *d, struct duda_redis *redis,
                                  const struct duda_redis_command *commands, size_t n,
                                  struct duda_redis_reply *replies) MK_API_MUST_USE;

/** A Lua script; define it as a static variable: `static struct duda_redis_script take = {.source = "return
 * ..."}`. */
struct duda_redis_script {
    const char *source;
    char sha[41]; /**< internal */
};
/** Runs a script: the first n_keys of the n arguments become KEYS, the others ARGV. The source is sent to
 * each server only once. Returns the errors of duda_redis(). */
MK_API int duda_redis_eval(struct duda_ctx *d, struct duda_redis *redis, struct duda_redis_reply *reply,
                           struct duda_redis_script *script, size_t n_keys, const mk_str *arguments,
                           size_t n) MK_API_MUST_USE;

/* ---- Publish and subscribe ---- */

/** Limits: bytes of a channel name; messages queued for one subscriber. */
enum { DUDA_REDIS_CHANNEL_MAX = 256, DUDA_REDIS_MESSAGES_MAX = 256 };

/** A subscription of one handler to a channel. It ends with the handler. */
struct duda_redis_sub;

/**
 * Subscribes to a channel; waits until the server has confirmed. *out lives until the handler returns or
 * calls duda_redis_unsubscribe(). All subscriptions of a worker share one connection. Returns 0, -EINVAL (the
 * name is empty or too long), or an error as above.
 *
 *     struct duda_redis_sub *sub;
 *     mk_str message;
 *     int e = duda_redis_subscribe(d, redis, MK_STR("news"), &sub);
 *     while (!e && !(e = duda_redis_receive(d, sub, MK_FOREVER, &message)))
 *         e = duda_write(d, message);
 */
MK_API int duda_redis_subscribe(struct duda_ctx *d, struct duda_redis *redis, mk_str channel,
                                struct duda_redis_sub **out) MK_API_MUST_USE;
/**
 * Waits for the next message, which is valid until the next call. -ETIME: no message arrived within
 * `timeout_ms` milliseconds (MK_FOREVER: no limit; 0: does not wait). -EOVERFLOW: messages were dropped
 * because more than DUDA_REDIS_MESSAGES_MAX were queued. -ECONNRESET: the connection was lost, and messages
 * may have been lost, too. After either of these two errors, continue receiving: the subscription stays, and
 * is renewed when the server returns. -EINVAL: the subscription has ended. To publish, call duda_redis(d, r,
 * &reply, MK_STR("PUBLISH"), channel, message).
 */
MK_API int duda_redis_receive(struct duda_ctx *d, struct duda_redis_sub *sub, uint32_t timeout_ms,
                              mk_str *message) MK_API_MUST_USE;
/** Ends a subscription before the handler returns. */
MK_API void duda_redis_unsubscribe(struct duda_redis_sub *sub);

#ifdef __cplusplus
}

/* In C++ this function hides the struct of the same name; callers write `struct duda_redis *`, as in C. */
template <typename... strings>
static inline MK_API_MUST_USE int duda_redis(struct duda_ctx *d, struct duda_redis *r,
                                             struct duda_redis_reply *reply, strings... parts)
{
    const mk_str all[] = {parts...};
    return duda_redis_do(d, r, reply, all, sizeof...(parts));
}
#endif

#endif
