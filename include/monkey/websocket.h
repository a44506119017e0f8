/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket (RFC 6455) over HTTP/1.1 and HTTP/2: a request opens a channel that carries messages in both
 * directions. */
#ifndef MONKEY_WEBSOCKET_H
#define MONKEY_WEBSOCKET_H

#include <monkey/tunnel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * These functions belong to the plugin `websocket`. A plugin that calls them must list `websocket` in
 * `needs`, so that the server loads both plugins. A program with libmonkey loads it with
 * `mk_server_set(s, "PLUGINS", "Load", "websocket")`. Server and library include the plugin unless they were
 * built with MK_WEBSOCKET=OFF:
 *
 *     static const char *const needs[] = {"websocket", NULL};
 *     MK_PLUGIN(mine) = {MK_PLUGIN_HEAD, .name = "mine", .needs = needs, ...};
 *
 * Call them only in the worker that serves the WebSocket: from its callbacks, from other hooks and handlers,
 * or from timers. None of them invokes a callback before it returns, so a WebSocket cannot disappear during a
 * call.
 */

/**
 * The server's end of a WebSocket. Valid from mk_websocket_open() until on_close() returns: do not use the
 * pointer afterwards. It answers pings and the closing handshake automatically, reassembles fragments,
 * validates UTF-8, and closes connections to unresponsive clients.
 */
struct mk_websocket;

/** The type of a message. */
enum mk_websocket_kind {
    MK_WEBSOCKET_TEXT = 1, /**< UTF-8; messages from clients are validated */
    MK_WEBSOCKET_BINARY = 2
};

/** Close codes: those of RFC 6455, section 7.4.1, that matter to applications. Applications may define their
 * own codes from 4000 to 4999. */
enum {
    MK_WEBSOCKET_NORMAL = 1000,
    MK_WEBSOCKET_GOING_AWAY = 1001,     /**< the user left the page, or the server shuts down */
    MK_WEBSOCKET_PROTOCOL_ERROR = 1002, /**< invalid frames */
    MK_WEBSOCKET_NO_CODE = 1005,        /**< the peer's close frame had no code; never sent in a frame */
    MK_WEBSOCKET_ABNORMAL = 1006,       /**< no closing handshake; never sent in a frame */
    MK_WEBSOCKET_BAD_DATA = 1007,       /**< invalid UTF-8, or a message that cannot be decompressed */
    MK_WEBSOCKET_POLICY = 1008,         /**< a message that violates the rules of the application */
    MK_WEBSOCKET_TOO_BIG = 1009,        /**< a message or frame exceeds its limit */
    MK_WEBSOCKET_INTERNAL_ERROR = 1011, /**< an internal failure, such as out of memory */
    MK_WEBSOCKET_REASON_MAX = 123       /**< maximum length of a reason in bytes */
};

/** Callbacks of a WebSocket. All except on_close() may be NULL. */
struct mk_websocket_ops {
    /**
     * A complete, decompressed message has arrived; `data` is valid during the call. The server calls
     * on_message only while the WebSocket is not paused, and while fewer than `queue_max` bytes are queued,
     * so that a reply sent here is always accepted. Until both conditions hold, the message waits.
     */
    void (*on_message)(void *ctx, struct mk_websocket *socket, enum mk_websocket_kind kind, mk_str data);
    /** Called when the queue has drained to less than half of `queue_max` after a message was rejected with
     * -EAGAIN. */
    void (*on_writable)(void *ctx, struct mk_websocket *socket);
    /** The reply to mk_websocket_ping() has arrived. Replies to automatic keep-alive pings are not
     * reported. */
    void (*on_pong)(void *ctx, struct mk_websocket *socket, mk_str data);
    /**
     * Called when the WebSocket is closed: exactly once, as the last callback, for every WebSocket that
     * mk_websocket_open() opened. `code` and `reason` come from the client. The code is MK_WEBSOCKET_NO_CODE
     * if the client closed without a code, and MK_WEBSOCKET_ABNORMAL if it disconnected without a close
     * frame. If the client violated the protocol, `code` is the one that was sent to the client. Unsent
     * messages are lost. Calls with `socket` from on_close() fail.
     */
    void (*on_close)(void *ctx, struct mk_websocket *socket, unsigned code, mk_str reason);
    uint64_t reserved[4]; /**< must be zero */
};

/** Flags for optional features. */
enum {
    /** Accept permessage-deflate (RFC 7692) if the client offers it and zlib was available at build time. By
     * default, each message is compressed on its own, so a WebSocket holds no compressor state. */
    MK_WEBSOCKET_COMPRESS = 1,
    /** With MK_WEBSOCKET_COMPRESS: messages may refer to earlier ones (context takeover), to the extent that
     * the client agrees. Similar small messages become much smaller, at a cost of up to 300 KB for each busy
     * WebSocket and 32 KB for each idle one. */
    MK_WEBSOCKET_KEEP_CONTEXT = 2
};

/**
 * Options of a WebSocket. They must live as long as the WebSockets that use them: make them constant, or part
 * of the configuration. A limit of 0 means the default.
 *
 *     static const struct mk_websocket_ops ops = {.on_message = on_message, .on_close = on_close};
 *     static const struct mk_websocket_options options = {
 *         .ops = &ops, .message_max = 64 << 10, .flags = MK_WEBSOCKET_COMPRESS};
 */
struct mk_websocket_options {
    const struct mk_websocket_ops *ops;
    /** Supported subprotocols, separated by commas. The first subprotocol in the client's list that is
     * supported is selected; none if the client requests none. NULL: none. */
    const char *subprotocols;
    /** Origins whose pages may connect, separated by spaces: "https://example.org", "https:*.example.org" for
     * its subdomains, or "same" for the requested host and port, with the scheme of the request or https,
     * because a proxy may have terminated TLS. Clients that send no Origin are not browsers, and are
     * accepted. NULL: all origins are allowed, so a cookie alone must not authenticate users. */
    const char *origins;
    size_t message_max;   /**< maximum size of a decompressed message in bytes; a larger one closes the
                              WebSocket with 1009. Default 1 MB */
    size_t frame_max;     /**< maximum size of a frame in bytes; a larger one also closes the WebSocket with
                              1009. Default: message_max */
    size_t queue_max;     /**< new messages are rejected while this many bytes or more are queued. Default 256
                              KB */
    uint32_t ping_ms;     /**< send a ping after this much silence, and wait as long for the pong. Default
                              30 s */
    uint32_t close_ms;    /**< timeout of the closing handshake. Default 5 s */
    unsigned flags;       /**< MK_WEBSOCKET_COMPRESS and so on */
    size_t compress_min;  /**< messages of fewer bytes are not compressed. Default 64 */
    uint64_t reserved[6]; /**< must be zero */
};

/**
 * Accepts the WebSocket that the client requested (mk_request_tunnel()); return MK_DONE afterwards. You may
 * send messages immediately; they follow the handshake.
 *
 * Returns 0; on_close(ctx) is then called exactly once. On failure, on_close() is not called, and the
 * response describes the error: return MK_ERROR. The errors are -EINVAL if the client did not request a
 * WebSocket (426; MK_NEXT is also allowed) or the options are invalid (500); -ENODEV if the plugin is not
 * loaded (500, logged); -EPROTO if the handshake is invalid (400, 426); -EACCES if the origin is not allowed
 * (403); -EALREADY; and -ENOMEM (500 or 503).
 *
 *     static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
 *     {
 *         struct mk_websocket *s;
 *         return mk_websocket_open(request, response, &options, data, &s) ? MK_ERROR : MK_DONE;
 *     }
 */
MK_API int mk_websocket_open(struct mk_request *request, struct mk_response *response,
                             const struct mk_websocket_options *options, void *ctx,
                             struct mk_websocket **out) MK_API_MUST_USE;

/** The request that opened the WebSocket. */
MK_API struct mk_request *mk_websocket_request(const struct mk_websocket *socket);
/** The selected subprotocol; absent if there is none. */
MK_API mk_str mk_websocket_subprotocol(const struct mk_websocket *socket);

/* ---- Sending ---- */

/**
 * Queues a message (the data is copied). All messages that are queued for a WebSocket during one loop
 * iteration are sent with one system call at its end. Text must be UTF-8; it is not validated.
 *
 * Returns 0; -EAGAIN if `queue_max` bytes or more are queued already (on_writable() follows); -ESHUTDOWN if
 * the WebSocket is closed or closing; -EBUSY between the parts of another message; or -ENOMEM.
 *
 *     static void on_message(void *ctx, struct mk_websocket *s, enum mk_websocket_kind kind, mk_str data)
 *     {
 *         (void)mk_websocket_send(s, kind, data);
 *     }
 */
MK_API int mk_websocket_send(struct mk_websocket *socket, enum mk_websocket_kind kind, mk_str data);

/** Queues a part of a message as a separate frame, for messages whose length is not known in advance.
 * All parts have the same kind. Returns the same values as mk_websocket_send(), which is available again
 * after the `last` part. */
MK_API int mk_websocket_send_part(struct mk_websocket *socket, enum mk_websocket_kind kind, mk_str data,
                                  bool last);

/** A message for many WebSockets: framed, compressed and stored only once, for any number of
 * recipients. It belongs to one worker. */
struct mk_websocket_message;

/**
 * Prepares a message (the data is copied). Returns NULL if out of memory. Free it when you have queued it for
 * all recipients: the message lives until the last recipient has received it.
 *
 *     struct mk_websocket_message *m = mk_websocket_message_new(MK_WEBSOCKET_TEXT, news);
 *     for (struct member *at = first; m && at; at = at->next)
 *         (void)mk_websocket_send_message(at->socket, m);
 *     mk_websocket_message_free(m);
 */
MK_API struct mk_websocket_message *mk_websocket_message_new(enum mk_websocket_kind kind,
                                                             mk_str data) MK_API_MUST_USE;
/** Releases the message. NULL is allowed. */
MK_API void mk_websocket_message_free(struct mk_websocket_message *message);
/** Queues a prepared message. Returns the same values as mk_websocket_send(). */
MK_API int mk_websocket_send_message(struct mk_websocket *socket, struct mk_websocket_message *message);

/** Sends a ping with 1 to 125 bytes of data (otherwise -EINVAL); on_pong() receives the reply. Returns the
 * same values as mk_websocket_send(), but is also allowed between the parts of a message. */
MK_API int mk_websocket_ping(struct mk_websocket *socket, mk_str data);

/* ---- Closing and pausing ---- */

/**
 * Closes the WebSocket: queued messages are sent, then the code and reason. Messages that arrive afterwards
 * are dropped. on_close() follows when the client has replied, or after `close_ms`. `code` is 1000 to 1003,
 * 1007 to 1014 or 3000 to 4999, or MK_WEBSOCKET_NO_CODE to send none; the reason is UTF-8 of at most
 * MK_WEBSOCKET_REASON_MAX bytes. Returns 0; -EINVAL for other values; or -EALREADY.
 *
 *     int e = mk_websocket_close(socket, 1001, MK_STR("the server restarts"));
 */
MK_API int mk_websocket_close(struct mk_websocket *socket, unsigned code, mk_str reason);
/** Aborts the connection without a closing handshake; on_close() follows, with MK_WEBSOCKET_ABNORMAL. */
MK_API void mk_websocket_abort(struct mk_websocket *socket);

/**
 * Stops the delivery of messages until mk_websocket_resume(). In the meantime the server reads nothing from
 * the client, and does not answer its pings.
 *
 *     mk_websocket_pause(socket); // until the database has stored the message
 *     ...
 *     mk_websocket_resume(socket);
 */
MK_API void mk_websocket_pause(struct mk_websocket *socket);
MK_API void mk_websocket_resume(struct mk_websocket *socket);

#ifdef __cplusplus
}
#endif

#endif
