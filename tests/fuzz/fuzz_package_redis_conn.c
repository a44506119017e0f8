/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to the greeting, from Sentinels, and from cluster nodes about their slots may be any bytes: a
 * worker keeps a map of nodes with addresses that it can connect to. */
#include "fake_upstream.h"

#include <duda/wait.h>
#include <redis/cluster.h>
#include <redis/key_slot.h>

enum { SENTINEL = 1, CLUSTER = 2, DATABASE = 4, REPLY_MAX = 4096, SLOTS_SHOWN = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct redis_cluster *cluster;
static struct duda_redis_reply slots_reply; /* the reply to CLUSTER SLOTS */
static unsigned n_nodes;

/* ---- Replacements for the layers above the connection ---- */

int redis_command_queue_init(struct redis_command_queue *q, struct mk_worker *w,
                             const struct redis_settings *settings, const char *address)
{
    (void)w, (void)settings;
    size_t n = strlen(address);
    MK_ASSERT(n && n < sizeof q->conn.address && strchr(address, ':'));
    memcpy(q->conn.address, address, n + 1);
    n_nodes++;
    return 0;
}

void redis_command_queue_fini(struct redis_command_queue *q)
{
    MK_ASSERT(q->conn.address[0]);
    n_nodes--;
}

int redis_request_run(struct duda_ctx *d, struct redis_command_queue *q, const struct redis_request *r,
                      struct duda_redis_reply *replies, bool *is_unsent)
{
    (void)d, (void)q;
    MK_ASSERT(r->n == 1);
    *replies = slots_reply;
    *is_unsent = false;
    return 0;
}

mk_str duda_sprintf(struct duda_ctx *d, const char *fmt, ...)
{
    char buffer[100];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(buffer, sizeof buffer, fmt, args);
    va_end(args);
    MK_ASSERT(n >= 0 && (size_t)n < sizeof buffer);
    return duda_strdup(d, mk_str_of(buffer, (size_t)n));
}

size_t duda_arena_mark(struct duda_ctx *d)
{
    (void)d;
    return 0;
}

void duda_arena_rewind(struct duda_ctx *d, size_t mark)
{
    (void)d, (void)mark;
}

int duda_cancelled(struct duda_ctx *d)
{
    (void)d;
    return 0;
}

int duda_sleep(struct duda_ctx *d, uint32_t ms)
{
    (void)d, (void)ms;
    MK_ASSERT(false); /* only one handler at a time fetches the map */
    return -ECANCELED;
}

/* ---- The owner of the connection ---- */

static void on_up(struct package_conn *conn)
{
    MK_ASSERT(package_conn_is_in_state(conn, PACKAGE_CONN_READY));
}

static void on_down(struct package_conn *conn, int error)
{
    MK_ASSERT(package_conn_is_in_state(conn, PACKAGE_CONN_DOWN) && error < 0 && conn->error_text[0]);
}

static void on_reply(struct redis_conn *c, struct duda_redis_reply *reply)
{
    struct redis_command_queue *q = NULL;
    MK_ASSERT(redis_conn_is_up(c));
    slots_reply = *reply;
    enum redis_redirect advice = redis_cluster_parse_redirect(cluster, reply, 1, &q);
    MK_ASSERT((advice == REDIS_REDIRECT_MOVED || advice == REDIS_REDIRECT_ASK) == (q != NULL));
    if (advice != REDIS_REDIRECT_NONE)
        MK_ASSERT(reply->type == DUDA_REDIS_ERROR);
    redis_cluster_invalidate(cluster);
    for (int i = 0; i < SLOTS_SHOWN; i++) {
        q = NULL;
        int e = redis_cluster_find_node(NULL, cluster, i ? (i - 1) * 2731 % REDIS_SLOTS : REDIS_NO_KEY, &q);
        MK_ASSERT(e == 0 || !q || q->conn.address[0] || q == (void *)c);
    }
    MK_ASSERT(n_nodes <= 255);
}

static const struct package_conn_ops package_ops = {.section = "REDIS",
                                                    .connect = redis_conn_connect,
                                                    .close = redis_conn_close,
                                                    .on_up = on_up,
                                                    .on_down = on_down};

static const struct redis_conn_ops conn_ops = {.on_reply = on_reply};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redis_settings settings = {.name = MK_STR("main"), .timeout_ms = 1000, .reply_max = REPLY_MAX};
    struct redis_command_queue any = {.n_users = 0};
    if (size < 2 || size > REPLY_MAX)
        return 0;
    settings.sentinel = data[0] & SENTINEL ? MK_STR("shop") : MK_STR("");
    settings.cluster = data[0] & CLUSTER;
    settings.database = data[0] & DATABASE;
    peer_piece = data[1] % 64 + 1;
    peer_input = mk_str_of((const char *)data + 2, size - 2);
    slots_reply = (struct duda_redis_reply){.type = DUDA_REDIS_NIL};
    MK_ASSERT(redis_conn_init(&any.conn, NULL, &settings, &package_ops, &conn_ops, NULL) == 0);
    cluster = redis_cluster_new(NULL, &settings, &any);
    MK_ASSERT(cluster);
    while (peer_input.len)
        package_conn_open(&any.conn.stream.base);
    redis_conn_fini(&any.conn);
    redis_cluster_free(cluster);
    MK_ASSERT(!n_nodes && !peer_open);
    pool_free();
    return 0;
}
