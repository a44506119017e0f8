/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket (RFC 6455): messages in both directions in the place of a response, over HTTP/1.1 and HTTP/2. */
#ifndef MONKEY_WEBSOCKET_H
#define MONKEY_WEBSOCKET_H

#include <monkey/tunnel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `websocket`. A plugin that calls them names it in `needs`, so that the
 * server loads both. The program has them, unless it was built with MK_WEBSOCKET=OFF:
 *
 *     static const char *const needs[] = {"websocket", NULL};
 *     MK_PLUGIN(mine) = {MK_PLUGIN_HEAD, .name = "mine", .needs = needs, ...};
 *
 * All of them may be called only in the worker that serves the socket: from its callbacks, from other hooks
 * and handlers, from alarms. None of them calls back before it returns, so a socket cannot vanish within a
 * call.
 */

/**
 * The server's end of a WebSocket. It exists from mk_websocket_open() until on_close() returns, and not
 * longer: forget the pointer there. It answers pings and the closing handshake by itself, joins fragments,
 * checks that text is UTF-8, and ends connections whose client no longer answers.
 */
struct mk_websocket;

/** What a message is made of. */
enum mk_websocket_kind {
    MK_WEBSOCKET_TEXT = 1, /**< UTF-8; that of clients is checked */
    MK_WEBSOCKET_BINARY = 2
};

/** Why a socket was closed: the codes of RFC 6455, section 7.4.1, that matter to programs. Those of
 * applications are 4000 to 4999. */
enum {
    MK_WEBSOCKET_NORMAL = 1000,
    MK_WEBSOCKET_GOING_AWAY = 1001,     /**< a page was left, a server ends */
    MK_WEBSOCKET_PROTOCOL_ERROR = 1002, /**< frames that are not valid */
    MK_WEBSOCKET_NO_CODE = 1005,        /**< the peer named none; never sent */
    MK_WEBSOCKET_ABNORMAL = 1006,       /**< without a closing handshake; never sent */
    MK_WEBSOCKET_BAD_DATA = 1007,       /**< text that is not UTF-8, a message that cannot be inflated */
    MK_WEBSOCKET_POLICY = 1008,         /**< against the rules of the application */
    MK_WEBSOCKET_TOO_BIG = 1009,        /**< a message or frame beyond its limit */
    MK_WEBSOCKET_INTERNAL_ERROR = 1011, /**< something failed here, such as memory */
    MK_WEBSOCKET_REASON_MAX = 123       /**< bytes of a reason */
};

/** What the owner of a socket learns. Functions other than on_close() may be NULL. */
struct mk_websocket_ops {
    /**
     * A message has arrived, whole and inflated; `data` is valid during the call. It is called only while
     * less than `queue_max` waits to be sent, so that an answer from here is always accepted, and not while
     * the socket is paused; until then the client has to wait.
     */
    void (*on_message)(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data);
    /** A message was refused with -EAGAIN, and now less than half of `queue_max` waits. */
    void (*on_room)(void *ctx, struct mk_websocket *s);
    /** The answer to mk_websocket_ping(); those to the pings of the idle clock are not reported. */
    void (*on_pong)(void *ctx, struct mk_websocket *s, mk_str data);
    /**
     * The socket is over: called exactly once, last, for every socket that mk_websocket_open() made, however
     * it ends. `code` and `reason` are those of the client; MK_WEBSOCKET_NO_CODE if it closed without, and
     * MK_WEBSOCKET_ABNORMAL if it left without closing. Where the client broke a rule it is the code that it
     * got. What was queued and not sent is lost. Functions that are called with `s` here fail.
     */
    void (*on_close)(void *ctx, struct mk_websocket *s, unsigned code, mk_str reason);
};

/** What a client may offer, and what is wanted of it. */
enum {
    /** Agree to permessage-deflate (RFC 7692), if the client offers it and zlib was there at build time. By
     * default each message is compressed alone, so that a socket owns no compressor. */
    MK_WEBSOCKET_COMPRESS = 1,
    /** With MK_WEBSOCKET_COMPRESS: messages may refer to earlier ones (context takeover), as far as the
     * client agrees. That makes similar small messages much smaller, and costs up to 300 KB for each busy
     * socket and 32 KB for each idle one. */
    MK_WEBSOCKET_KEEP_CONTEXT = 2
};

/** For times: there is no limit. */
#define MK_WEBSOCKET_NEVER UINT32_MAX

/**
 * How sockets of one kind are to be. It must live as long as they do: make it constant, or a part of the
 * configuration. A limit of 0 is the default.
 *
 *     static const struct mk_websocket_ops ops = {.on_message = on_message, .on_close = on_close};
 *     static const struct mk_websocket_options options = {
 *         MK_WEBSOCKET_OPTIONS_HEAD, .ops = &ops, .message_max = 64 << 10, .flags = MK_WEBSOCKET_COMPRESS};
 */
struct mk_websocket_options {
    size_t size; /**< MK_WEBSOCKET_OPTIONS_HEAD sets it: the struct may grow */
    const struct mk_websocket_ops *ops;
    /** Subprotocols that are spoken here, separated by commas; the first one of the client's list that is
     * among them is agreed upon. A client without any gets none. NULL: none. */
    const char *subprotocols;
    /** Origins from which pages may connect, separated by spaces: "https://example.org",
     * "https:*.example.org" for its subdomains, "same" for the host and port that the request asked for, with
     * its scheme or https: a proxy may have ended TLS. Clients without Origin are no browsers and are let in.
     * NULL: pages of all origins, so a cookie alone must not identify users. */
    const char *origins;
    size_t message_max; /**< bytes of a message, inflated; more: 1009. Default 1 MB */
    size_t frame_max;   /**< bytes of a frame; more: 1009. Default: message_max */
    size_t queue_max;   /**< when so many bytes wait to be sent, messages are refused. Default 256 KB */
    uint32_t
        ping_ms; /**< a client that was silent for so long gets a ping, and as long to answer. Default 30 s */
    uint32_t close_ms;   /**< how long the closing handshake may take. Default 5 s */
    unsigned flags;      /**< MK_WEBSOCKET_COMPRESS and the like */
    size_t compress_min; /**< shorter messages are not compressed. Default 64 */
};
#define MK_WEBSOCKET_OPTIONS_HEAD .size = sizeof(struct mk_websocket_options)

/**
 * Accepts the WebSocket that the client asked for (mk_request_tunnel()): return MK_DONE afterwards. Messages
 * may be sent at once; they follow the handshake.
 *
 * 0, and on_close(ctx) will be called exactly once. Otherwise it will not be called, and the response says
 * why: answer MK_ERROR. -EINVAL: the client asks for no WebSocket (426; MK_NEXT is fine, too), or the
 * options are wrong, or the plugin is not loaded (500); -EPROTO: its handshake is not valid (400, 426);
 * -EACCES: its origin may not connect (403); -EALREADY; -ENOMEM (500 or 503).
 *
 *     static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         struct mk_websocket *s;
 *         return mk_websocket_open(request, response, &options, data, &s) ? MK_ERROR : MK_DONE;
 *     }
 */
MK_API int mk_websocket_open(struct mk_request *request, struct mk_response *r,
                             const struct mk_websocket_options *options, void *ctx,
                             struct mk_websocket **out);

/** The request that it began as. */
MK_API struct mk_request *mk_websocket_request(const struct mk_websocket *s);
/** The subprotocol that was agreed upon; absent if there is none. */
MK_API mk_str mk_websocket_subprotocol(const struct mk_websocket *s);

/* ---- Sending ---- */

/**
 * Queues a message (the data is copied). What is queued for a socket during one turn of the loop is sent with
 * one system call at its end. Text must be UTF-8; it is not checked.
 *
 * 0; -EAGAIN: `queue_max` bytes or more wait already, on_room() will be called; -ESHUTDOWN: it is closed or
 * being closed; -EBUSY: between the parts of another message; -ENOMEM.
 *
 *     static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
 *     {
 *         (void)mk_websocket_send(s, kind, data);
 *     }
 */
MK_API int mk_websocket_send(struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data);

/** Queues a part of a message as a frame of its own, for messages whose end is not known yet. All parts have
 * the same kind. Results as of mk_websocket_send(), which is possible again after the `last` one. */
MK_API int mk_websocket_send_part(struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data,
                                  bool last);

/** A message for many sockets: framed and compressed once, kept once, however many it waits for. Belongs to
 * one worker. */
struct mk_websocket_message;

/**
 * Prepares a message (the data is copied); NULL when memory is out. Drop it when it is sent to all: it lives
 * until the last of them has got it.
 *
 *     struct mk_websocket_message *m = mk_websocket_message_new(MK_WEBSOCKET_TEXT, news);
 *     for (struct member *at = first; m && at; at = at->next)
 *         (void)mk_websocket_send_message(at->socket, m);
 *     mk_websocket_message_free(m);
 */
MK_API struct mk_websocket_message *mk_websocket_message_new(enum mk_websocket_kind kind,
                                                             mk_str data) MK_API_MUST_USE;
/** NULL is fine. */
MK_API void mk_websocket_message_free(struct mk_websocket_message *m);
/** Queues it. Results as of mk_websocket_send(). */
MK_API int mk_websocket_send_message(struct mk_websocket *s, struct mk_websocket_message *m);

/** Sends a ping with at most 125 bytes (-EINVAL if it is more); on_pong() gets the answer. Results as of
 * mk_websocket_send(), but between parts it is allowed. */
MK_API int mk_websocket_ping(struct mk_websocket *s, mk_str data);

/* ---- Ending, and waiting ---- */

/**
 * Closes it: what is queued is sent, then the code and reason. Messages that still arrive are dropped;
 * on_close() follows when the client has answered, or after `close_ms`. `code` is 1000 to 1003, 1007 to 1014
 * or 3000 to 4999, or MK_WEBSOCKET_NO_CODE to send none; the reason is UTF-8 of at most
 * MK_WEBSOCKET_REASON_MAX bytes. 0, -EINVAL for other ones, or -EALREADY.
 */
MK_API int mk_websocket_close(struct mk_websocket *s, unsigned code, mk_str reason);
/** Ends it without a closing handshake; on_close() follows, with MK_WEBSOCKET_ABNORMAL. */
MK_API void mk_websocket_abort(struct mk_websocket *s);

/** Delivers no messages until mk_websocket_resume(): the client has to wait, and pings are not answered. */
MK_API void mk_websocket_pause(struct mk_websocket *s);
MK_API void mk_websocket_resume(struct mk_websocket *s);

#ifdef __cplusplus
}
#endif

#endif
