/* SPDX-License-Identifier: Apache-2.0 */
/* Upstreams: the servers behind this one, and connections to them that are kept, limited and balanced. Its
 * functions are in monkey-upstream.so; a plugin that calls them says so: see mk_upstream_plugin. */
#ifndef MONKEY_UPSTREAM_H
#define MONKEY_UPSTREAM_H

#include <monkey/config.h>
#include <monkey/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `upstream`. A plugin that calls them says so in its `needs`, so that
 * the server loads both, and its object is linked with monkey-upstream.so (`pkg-config --libs
 * monkey-upstream`):
 *
 *     static const char *const needs[] = {"upstream", NULL};
 *     MK_PLUGIN(mine) = {MK_PLUGIN_HEAD, .name = "mine", .needs = needs, ...};
 */

/**
 * One or more servers that give the same answers: an [UPSTREAM] section, or a server that a route names.
 * Lives as long as the configuration.
 */
struct mk_upstream;

/** What a plugin prefers where the [UPSTREAM] section says nothing, and for a server that a route names. */
struct mk_upstream_defaults {
    uint16_t port; /**< of a server that is named without one; 0: it must have one */
    bool tls;      /**< the servers speak TLS */
    unsigned max;  /**< connections to one server, of all workers together; 0: any number */
    unsigned keep; /**< connections to one server that one worker keeps while they are idle; 0: none, or
                        as many as there may be where their number is limited */
};

/**
 * The upstream that `name` means: that of the [UPSTREAM] section with that Name, or else a server of its own,
 * `HOST:PORT`, `[ADDRESS6]:PORT` or `unix:/path`. Call it from bind() of a handler, or with the spot of a
 * key. Equal names in one configuration are one upstream, if `defaults` are equal. A host name that cannot be
 * resolved is no error: the server is down until it can be. NULL: wrong, which was reported at `name`.
 */
MK_API struct mk_upstream *mk_upstream_find(const struct mk_conf_spot *spot, mk_str name,
                                            const struct mk_upstream_defaults *defaults);
/** As the configuration calls it. */
MK_API mk_str mk_upstream_name(const struct mk_upstream *u);
/** Do its servers speak TLS? */
MK_API bool mk_upstream_is_tls(const struct mk_upstream *u);
/** How many servers it has. */
MK_API unsigned mk_upstream_count(const struct mk_upstream *u);

/** A number for the i-th server that does not change while its name and that of the upstream stay: for a
 * cookie that leads a client to the same server. */
MK_API uint64_t mk_upstream_server_id(const struct mk_upstream *u, unsigned i);

/* ---- Connections ---- */

/** A connection to one server of an upstream, lent for one exchange: a pooled one, or a new one that is being
 * made. Belongs to the worker that took it. */
struct mk_link;

/** Which server, and which kind of connection. */
struct mk_link_wish {
    uint64_t hash;  /**< for `Balance hash`: equal ones meet the same server */
    uint64_t avoid; /**< servers that were tried already, a bit for each mk_link_server() */
    int server;     /**< this one, if it is up (a sticky session); -1: any */
    bool fresh;     /**< no pooled connection: one that was kept has failed */
    bool counts;    /**< hash is set; else requests are spread in turn where Balance is hash */
};

/**
 * Takes a connection. It may still have to wait for its turn, a name or a handshake: mk_link_state() tells,
 * and on_ready(ctx, which) is called when that changes, and whenever the connection becomes readable
 * (MK_READABLE), writable (MK_WRITABLE) or has ended (MK_ENDED, MK_HUNG_UP). It is never called from inside
 * these functions. Edge triggered: read or write until -EAGAIN. NULL: no memory.
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
 * 0: it is connected, and past its TLS handshake. -EAGAIN: not yet. Else there is none, and this is why:
 * -EHOSTUNREACH: no server is up; -EBUSY: too many wait for a connection, or it waited longer than
 * QueueTimeout; -ETIMEDOUT: a server did not accept within ConnectTimeout; -EPROTO: the TLS handshake failed;
 * or what connect(2) reported. Then only mk_link_give() remains to be called.
 */
MK_API int mk_link_state(const struct mk_link *l);

/** Reads what has arrived: bytes, 0 at the end, -EAGAIN, or a negated errno value. */
MK_API ssize_t mk_link_read(struct mk_link *l, char *room, size_t cap);
/** Writes: how many bytes were taken (offer the others again, first), -EAGAIN, or a negated errno value.
 * `more`: more follows at once. */
MK_API ssize_t mk_link_write(struct mk_link *l, mk_str bytes, bool more);
/** We send no more. */
MK_API void mk_link_end(struct mk_link *l);

/** Had it served another exchange before? Its server may have closed it at that moment: what got no answer
 * may be sent once more, over a `fresh` one. */
MK_API bool mk_link_was_kept(const struct mk_link *l);
/** Which server it leads to, from 0; -1 as long as none is chosen. */
MK_API int mk_link_server(const struct mk_link *l);
/** The server as the configuration writes it; absent as long as none is chosen. */
MK_API mk_str mk_link_server_name(const struct mk_link *l);

/** Call it when the response begins: the time since mk_link_take() counts as the server's latency. */
MK_API void mk_link_answered(struct mk_link *l);

/** What becomes of a connection that is given back. */
enum mk_link_end {
    MK_LINK_KEEP,  /**< it is clean: it may serve another exchange */
    MK_LINK_CLOSE, /**< it ends here, and that is no fault of the server */
    MK_LINK_FAILED /**< it ends, and counts against the server: MaxFails of these in a row, and it is down */
};
/** Gives it back, in any state; on_ready is not called any more. NULL is fine. */
MK_API void mk_link_give(struct mk_link *l, enum mk_link_end how);

/* ---- What is known of the servers ---- */

/** How many servers and worker processes there are room for, and bytes of a name with its NUL. */
enum { MK_UPSTREAM_SERVERS = 256, MK_UPSTREAM_WORKERS = 128, MK_UPSTREAM_NAME = 64 };

/** The state of a server. */
enum mk_upstream_state {
    MK_UPSTREAM_UP,
    MK_UPSTREAM_SLOW_START, /**< it has come back, and gets a growing share of the exchanges */
    MK_UPSTREAM_DOWN,       /**< it failed, or its health check did */
    MK_UPSTREAM_UNRESOLVED  /**< its name has no address */
};

/** One server, as all workers together see it. */
struct mk_upstream_info {
    char upstream[MK_UPSTREAM_NAME], server[MK_UPSTREAM_NAME]; /**< as the configuration writes them, cut */
    uint32_t state;                                            /**< enum mk_upstream_state */
    uint32_t backup, weight, max;                              /**< max: connections; 0: no limit */
    uint32_t latency_us;            /**< until the response begins, averaged over the last exchanges */
    uint64_t exchanges;             /**< that were begun */
    uint64_t failures;              /**< that failed by the server's fault */
    uint64_t checks, checks_failed; /**< by HealthCheck */
    uint32_t open, idle;            /**< connections: all of them, and those that serve nothing */
    uint32_t waiting; /**< exchanges that wait for a connection to it, or to any of its upstream */
};

/** How many of them one worker has. */
struct mk_upstream_gauge {
    uint32_t open, idle, waiting, reserved;
};

/** A server's place in the memory that workers share. They write it at any time: read it with
 * mk_upstream_info_at(). */
struct mk_upstream_place {
    struct mk_upstream_info info; /**< without its last three members */
    struct mk_upstream_gauge of[MK_UPSTREAM_WORKERS];
};

/** That memory, by its name and size for mk_config_shared(). Pages that no upstream uses take no memory. */
#define MK_UPSTREAM_BOARD "upstream/board"
struct mk_upstream_board {
    uint32_t n, n_workers; /**< places that were ever used, of servers and of workers */
    struct mk_upstream_place servers[MK_UPSTREAM_SERVERS];
};

/**
 * The i-th server of all upstreams; false: there are no more. An empty `server`: the configuration has it no
 * more. Any plugin may call it, without `needs`:
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
