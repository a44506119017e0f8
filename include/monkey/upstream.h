/* SPDX-License-Identifier: Apache-2.0 */
/* Upstreams: the servers behind this one, and connections to them that are pooled, limited and balanced. */
#ifndef MONKEY_UPSTREAM_H
#define MONKEY_UPSTREAM_H

#include <monkey/config.h>
#include <monkey/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `upstream`. A plugin that calls them names it in `needs`, so that the
 * server loads both. The program has them, unless it was built with MK_UPSTREAM=OFF:
 *
 *     static const char *const needs[] = {"upstream", NULL};
 *     MK_PLUGIN(mine) = {MK_PLUGIN_HEAD, .name = "mine", .needs = needs, ...};
 */

/**
 * One or more servers that give the same answers: an [UPSTREAM] section, or a server that a route names.
 * Lives as long as the configuration.
 */
struct mk_upstream;

/** A plugin's defaults for keys that an [UPSTREAM] section leaves out, and for a server named in a route. */
struct mk_upstream_defaults {
    uint16_t port; /**< of servers written without one; 0: a port is required */
    bool tls;      /**< the servers speak TLS */
    unsigned max;  /**< connections to one server from all workers together; 0: no limit */
    unsigned keep; /**< idle connections to one server that each worker keeps; 0: none, or all of them if
                        their number is limited */
};

/**
 * Finds the upstream called `name`: the [UPSTREAM] section with that Name, or else a single server written as
 * `HOST:PORT`, `[ADDRESS6]:PORT` or `unix:/path`. Call it from bind() of a handler. Within a configuration,
 * the same name with the same defaults gives the same upstream. A host name that does not resolve is not an
 * error: the server is down until it resolves. NULL: `name` is wrong, and the error has been reported there.
 */
MK_API struct mk_upstream *mk_upstream_find(const struct mk_conf_spot *spot, mk_str name,
                                            const struct mk_upstream_defaults *defaults);
/**
 * The same in load() or host() of a plugin, for an upstream that a section of its own names: mistakes are
 * reported at `key` of the section that filled `section`.
 */
MK_API struct mk_upstream *mk_upstream_open(struct mk_config *config, const void *section, const char *key,
                                            mk_str name, const struct mk_upstream_defaults *defaults);
/** Its name in the configuration. */
MK_API mk_str mk_upstream_name(const struct mk_upstream *u);
/** Do its servers speak TLS? */
MK_API bool mk_upstream_is_tls(const struct mk_upstream *u);
/** How many servers it has. */
MK_API unsigned mk_upstream_count(const struct mk_upstream *u);

/** A number for the i-th server, which changes only if its name or that of the upstream does, or the secret of
 * the server or of KeyFile. It tells nothing about the server: put it in a cookie to bring a client back to the
 * same server. */
MK_API uint64_t mk_upstream_server_id(const struct mk_upstream *u, unsigned i);

/* ---- Connections ---- */

/** A connection to one server of an upstream, borrowed for one exchange: from the pool, or a new one that may
 * still be connecting. Belongs to the worker that took it. */
struct mk_link;

/** Which server, and which kind of connection. */
struct mk_link_wish {
    uint64_t hash;  /**< for `Balance hash`: equal values lead to the same server */
    uint64_t avoid; /**< servers that have been tried, as a bit mask of mk_link_server() */
    int server;     /**< use this server if it is up (a sticky session); -1: any */
    bool fresh;     /**< open a new connection: a pooled one has just failed */
    bool counts;    /**< `hash` is set; without it, `Balance hash` takes the servers in turn */
    const struct mk_peer
        *client; /**< the client of the request, which counts against MaxPerAddress. NULL: none. Must
                                       live as long as mk_link_take() or mk_client_start() may use it: until
                                       the link, or the exchange, is given back */
    mk_str to;   /**< ADDRESS:PORT of a server that another one has named, for protocols that do so: with the
                    upstream's TLS and timeouts, but always a new connection, without limits, and no
                    matter which servers are up. Absent: one of the upstream's. Must live as long as the
                    link. */
};

/**
 * Takes a connection. It may still have to wait for a free one, for a name to resolve or for a handshake: see
 * mk_link_state(). on_ready(ctx, which) is called when that state changes, and whenever the connection
 * becomes readable (MK_READABLE), writable (MK_WRITABLE) or has ended (MK_ENDED, MK_HUNG_UP), but never from
 * inside these functions. Events are edge triggered: read or write until -EAGAIN. NULL: out of memory.
 *
 *     call->link = mk_link_take(worker, upstream, &wish, on_ready, call);
 *     ...
 *     static void on_ready(void *ctx, unsigned which)
 *     {
 *         struct call *call = ctx;
 *         int e = mk_link_state(call->link);
 *         if (e == 0)
 *             go_on(call);
 *         else if (e != -EAGAIN)
 *             fail(call, e);
 *     }
 */
MK_API struct mk_link *mk_link_take(struct mk_worker *w, struct mk_upstream *u,
                                    const struct mk_link_wish *wish,
                                    void (*on_ready)(void *ctx, unsigned which), void *ctx) MK_API_MUST_USE;
/**
 * 0: connected, with the TLS handshake done if there is one. -EAGAIN: not yet. Any other value means that
 * there is no connection, and only mk_link_give() may be called: -EHOSTUNREACH: no server is up; -EBUSY: the
 * queue is full, or the wait exceeded QueueTimeout; -ETIMEDOUT: no server accepted within ConnectTimeout;
 * -EPROTO: the TLS handshake failed; or an error of connect(2).
 */
MK_API int mk_link_state(const struct mk_link *l);

/** Reads what has arrived: bytes, 0 at the end, -EAGAIN, or a negated errno value. */
MK_API ssize_t mk_link_read(struct mk_link *l, char *room, size_t cap);
/** Writes, and returns how many bytes were taken (pass the rest again next time), -EAGAIN, or a negated errno
 * value. `more`: the next write follows at once. */
MK_API ssize_t mk_link_write(struct mk_link *l, mk_str bytes, bool more);
/** Half-closes it: we send nothing more. */
MK_API void mk_link_end(struct mk_link *l);

/** Did it come from the pool? Then the server may have closed it at the same moment: a request without an
 * answer may be sent again over a `fresh` connection. */
MK_API bool mk_link_was_kept(const struct mk_link *l);
/** The index of its server; -1 until one is chosen. */
MK_API int mk_link_server(const struct mk_link *l);
/** Its server as the configuration writes it; absent until one is chosen. */
MK_API mk_str mk_link_server_name(const struct mk_link *l);

/** Call it when the response begins: the time since mk_link_take() is recorded as the server's latency. */
MK_API void mk_link_answered(struct mk_link *l);

/** What to do with a connection that is given back. */
enum mk_link_end {
    MK_LINK_KEEP,  /**< return it to the pool: the exchange is complete */
    MK_LINK_CLOSE, /**< close it; the server is not to blame */
    MK_LINK_FAILED /**< close it, and count a failure: after MaxFails in a row the server is down */
};
/** Why it is given back with MK_LINK_FAILED, for the error log: a negated errno value, and static text. */
MK_API void mk_link_explain(struct mk_link *l, int error, const char *why);
/** Gives it back, in any state; on_ready is not called again. NULL is fine. */
MK_API void mk_link_give(struct mk_link *l, enum mk_link_end how);

/* ---- The state of the servers ---- */

/** The largest number of servers and of worker processes, those of former configurations included, and the
 * size of a name with its NUL. */
enum { MK_UPSTREAM_SERVERS = 256, MK_UPSTREAM_WORKERS = 1024, MK_UPSTREAM_NAME = 64 };

/** The state of a server. */
enum mk_upstream_state {
    MK_UPSTREAM_UP,
    MK_UPSTREAM_SLOW_START, /**< up again, with a growing share of the exchanges */
    MK_UPSTREAM_DOWN,       /**< it failed, or its health check did */
    MK_UPSTREAM_UNRESOLVED  /**< its name does not resolve */
};

/** One server, as seen by all workers together. */
struct mk_upstream_info {
    char upstream[MK_UPSTREAM_NAME],
        server[MK_UPSTREAM_NAME];   /**< as written in the configuration, possibly cut */
    uint32_t state;                 /**< enum mk_upstream_state */
    uint32_t backup, weight, max;   /**< max: connections; 0: no limit */
    uint32_t latency_us;            /**< until the response begins: an average of recent exchanges */
    uint64_t exchanges;             /**< started */
    uint64_t failures;              /**< of them, because of the server */
    uint64_t checks, checks_failed; /**< by HealthCheck */
    uint32_t open, idle;            /**< connections: all of them, and the idle ones */
    uint32_t waiting; /**< exchanges that wait for a connection to it, or to any server of its upstream */
};

/** One worker's share of these counts. */
struct mk_upstream_gauge {
    uint32_t open, idle, waiting, reserved;
};

/** A server's place in the memory that the workers share. They may write to it at any time, so read it with
 * mk_upstream_info_at(). */
struct mk_upstream_place {
    struct mk_upstream_info info; /**< without its last three members */
    struct mk_upstream_gauge of[MK_UPSTREAM_WORKERS];
};

/** That memory: pass its name and size to mk_config_shared(). Unused pages take no memory. */
#define MK_UPSTREAM_BOARD "upstream/board"
struct mk_upstream_board {
    uint32_t n, n_workers; /**< places used so far, of servers and of workers */
    struct mk_upstream_place servers[MK_UPSTREAM_SERVERS];
};

/**
 * Gets the i-th server of all upstreams; false: there are no more. If `server` is empty, the configuration no
 * longer has this one. Any plugin may call it, without `needs`:
 *
 *     board = mk_config_shared(config, MK_UPSTREAM_BOARD, sizeof *board);
 *     struct mk_upstream_info info;
 *     for (size_t i = 0; mk_upstream_info_at(board, i, &info); i++)
 *         print(&info);
 */
static inline bool mk_upstream_info_at(const struct mk_upstream_board *b, size_t i,
                                       struct mk_upstream_info *out)
{
    if (i >= __atomic_load_n(&b->n, __ATOMIC_ACQUIRE) || i >= MK_UPSTREAM_SERVERS)
        return false;
    const struct mk_upstream_place *place = &b->servers[i];
    uint32_t n = __atomic_load_n(&b->n_workers, __ATOMIC_RELAXED);
    *out = place->info;
    out->upstream[MK_UPSTREAM_NAME - 1] = out->server[MK_UPSTREAM_NAME - 1] = 0;
    out->open = out->idle = out->waiting = 0;
    for (uint32_t w = 0; w < n && w < MK_UPSTREAM_WORKERS; w++) {
        out->open += __atomic_load_n(&place->of[w].open, __ATOMIC_RELAXED);
        out->idle += __atomic_load_n(&place->of[w].idle, __ATOMIC_RELAXED);
        out->waiting += __atomic_load_n(&place->of[w].waiting, __ATOMIC_RELAXED);
    }
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
