# SPDX-License-Identifier: Apache-2.0
"""A Duda service that sends any command to Redis: `ask(server, "GET", "key")`."""

SOURCE = r"""
#define DUDA_USE "duda-redis"
#include <duda.h>
#include <duda/redis.h>
#include <errno.h>
#include <stdlib.h>

static void show(struct duda_ctx *d, const struct duda_redis_reply *r)
{
    switch (r->type) {
    case DUDA_REDIS_NIL:
        duda_puts(d, "nil");
        break;
    case DUDA_REDIS_NUMBER:
        duda_printf(d, "%lld", (long long)r->number);
        break;
    case DUDA_REDIS_LIST:
        duda_puts(d, "[");
        for (size_t i = 0; i < r->n; i++) {
            duda_puts(d, i ? " " : "");
            show(d, &r->items[i]);
        }
        duda_puts(d, "]");
        break;
    default:
        duda_puts(d, r->type == DUDA_REDIS_ERROR ? "!" : "");
        duda_write(d, r->text);
    }
}

/* Writes the error number, if there is an error, and the reply to the response body. */
static int tell(struct duda_ctx *d, int e, const struct duda_redis_reply *r)
{
    if (e == -ECANCELED)
        return e;
    if (e)
        duda_printf(d, "%d ", -e);
    show(d, r);
    return 0;
}

static struct duda_redis *redis(struct duda_ctx *d)
{
    return duda_redis_find(d, NULL);
}

/* /ask?c=GET&a=key */
static int ask(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    mk_str parts[] = {duda_query(d, "c"), duda_query(d, "a"), duda_query(d, "b"), duda_query(d, "x")};
    size_t n = 0;
    while (n < 4 && parts[n].p)
        n++;
    return tell(d, duda_redis_do(d, redis(d), &reply, parts, n), &reply);
}

/* Like /ask; the handler returns the error. */
static int bare(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    mk_str parts[] = {duda_query(d, "c"), duda_query(d, "a"), duda_query(d, "b")};
    int e = duda_redis(d, redis(d), &reply, MK_STR("SET"), MK_STR("hello"), MK_STR("x"));
    e = e ? e : duda_redis_do(d, redis(d), &reply, parts, parts[2].p ? 3 : 2);
    return e ? e : duda_puts(d, "fine");
}

/* Like /ask, for commands that may block. */
static int block(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    mk_str line = duda_query(d, "c"), parts[16];
    int64_t ms = 0;
    size_t n = 0;
    while (n < 16 && (parts[n] = mk_str_word(&line)).len)
        n++;
    duda_query_int(d, "ms", &ms);
    return tell(d, duda_redis_blocking(d, redis(d), &reply, ms ? (uint32_t)ms : MK_FOREVER, parts, n), &reply);
}

/* Sets a value; at least one replica must acknowledge the write. */
static int write_safely(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    const mk_str parts[] = {MK_STR("SET"), duda_query(d, "a"), duda_query(d, "b")};
    return tell(d, duda_redis_write_replicated(d, redis(d), &reply, 1, 500, parts, 3), &reply);
}

/* Writes keys of all nodes with one pipeline, and reads them with another one. */
static int spread(struct duda_ctx *d)
{
    enum { N = 100 };
    mk_str parts[N][3];
    struct duda_redis_command set[N], get[N];
    struct duda_redis_reply replies[N];
    size_t right = 0;
    for (size_t i = 0; i < N; i++) {
        mk_str key = duda_sprintf(d, "spread%zu", i);
        memcpy(parts[i], ((mk_str[]){MK_STR("SET"), key, key}), sizeof parts[i]);
        set[i] = (struct duda_redis_command){parts[i], 3};
    }
    int e = duda_redis_pipeline(d, redis(d), set, N, replies);
    for (size_t i = 0; i < N; i++) {
        parts[i][0] = MK_STR("GET");
        get[i] = (struct duda_redis_command){parts[i], 2};
    }
    e = e ? e : duda_redis_pipeline(d, redis(d), get, N, replies);
    for (size_t i = 0; i < N && !e; i++)
        right += replies[i].type == DUDA_REDIS_TEXT && mk_str_eq(replies[i].text, parts[i][1]);
    return e ? tell(d, e, &replies[0]) : duda_printf(d, "%zu", right);
}

static int hello(struct duda_ctx *d)
{
    struct duda_redis_reply reply;
    int e = duda_redis(d, redis(d), &reply, MK_STR("GET"), MK_STR("key"));
    return e ? tell(d, e, &reply) : duda_write(d, reply.text);
}

/* Dirties memory, so that the next allocation is not zeroed by chance. */
static void use_memory(struct duda_ctx *d)
{
    size_t mark = duda_arena_mark(d);
    char *p = duda_alloc(d, 2000);
    if (p)
        memset(p, 'x', 2000);
    duda_arena_rewind(d, mark);
}

static int both(struct duda_ctx *d, bool whole)
{
    const mk_str add[] = {MK_STR("INCR"), duda_query(d, "k")}, wrong[] = {MK_STR("LPUSH"), duda_query(d, "k"), MK_STR("x")};
    const mk_str odd[] = {MK_STR("NONSENSE")};
    const struct duda_redis_command all[] = {{add, 2}, {wrong, 3}, {add, 2}, {odd, 1}};
    struct duda_redis_reply replies[4];
    int64_t n = 3;
    duda_query_int(d, "n", &n);
    use_memory(d);
    int e = whole ? duda_redis_transaction(d, redis(d), all, (size_t)n, replies)
                  : duda_redis_pipeline(d, redis(d), all, (size_t)n, replies);
    if (e && n && (replies[0].type != DUDA_REDIS_ERROR || replies[0].n || replies[0].items || replies[0].number))
        return 500;
    if (e)
        return tell(d, e, &replies[0]);
    for (int64_t i = 0; i < n; i++) {
        show(d, &replies[i]);
        duda_puts(d, ";");
    }
    return 0;
}

static int many(struct duda_ctx *d)
{
    return both(d, false);
}

static int transaction(struct duda_ctx *d)
{
    return both(d, true);
}

static int script(struct duda_ctx *d)
{
    static struct duda_redis_script add = {.source = "return redis.call('INCRBY', KEYS[1], ARGV[1])"};
    const mk_str arguments[] = {MK_STR("script"), MK_STR("5")};
    struct duda_redis_reply reply;
    return tell(d, duda_redis_eval(d, redis(d), &reply, &add, 1, arguments, 2), &reply);
}

/* Writes each message until `end` arrives. */
static int listen(struct duda_ctx *d)
{
    struct duda_redis_sub *sub;
    mk_str message;
    duda_deadline(d, MK_FOREVER);
    int e = duda_redis_subscribe(d, redis(d), MK_STR("news"), &sub);
    if (e)
        return e;
    duda_puts(d, "listening\n");
    duda_flush(d);
    while ((e = duda_redis_receive(d, sub, MK_FOREVER, &message)) != -ECANCELED) {
        if (e)
            duda_printf(d, "error %d\n", -e);
        else
            duda_printf(d, "%.*s\n", MK_STR_ARG(message));
        if (duda_flush(d) || (!e && mk_str_eq(message, MK_STR("end"))))
            return 0;
    }
    return e;
}

static int brief(struct duda_ctx *d)
{
    struct duda_redis_sub *sub;
    mk_str message;
    int e = duda_redis_subscribe(d, redis(d), MK_STR("silence"), &sub);
    e = e ? e : duda_redis_receive(d, sub, 10, &message);
    duda_redis_unsubscribe(sub);
    return duda_printf(d, "%d", -e);
}

DUDA_SERVICE(asks,
    DUDA_GET("/", hello, "One GET."),
    DUDA_GET("/ask", ask, "Any command."),
    DUDA_GET("/bare", bare, "Any command; the handler returns its error."),
    DUDA_GET("/block", block, "A blocking command.", .stack = 256 << 10),
    DUDA_GET("/write", write_safely, "A replicated write."),
    DUDA_GET("/spread", spread, "A hundred keys.", .stack = 256 << 10),
    DUDA_GET("/many", many, "Several."),
    DUDA_GET("/transaction", transaction, "All or nothing."),
    DUDA_GET("/script", script, "A script."),
    DUDA_GET("/listen", listen, "Messages."),
    DUDA_GET("/brief", brief, "Listens for a moment."));
"""


def ask(server, command, *arguments):
    return server.get(f"/ask?c={command}" + "".join(f"&{name}={value}" for name, value in zip("abx", arguments))).text
