/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket object, and the state shared by all sockets of a worker. */
#ifndef MK_WEBSOCKET_WS_H
#define MK_WEBSOCKET_WS_H

#include <monkey/state_machine.h>
#include <monkey/websocket.h>
#include <monkey/worker.h>

#include "base/list.h"
#include "http/ws_extension.h"
#include "websocket/ws_deflate.h"
#include "websocket/ws_queue.h"

enum mk_ws_state {
    MK_WS_HANDSHAKE, /* a failure in this state does not call on_close() */
    MK_WS_OPEN,
    MK_WS_CLOSING, /* we have sent Close and wait for the client's Close; messages are dropped */
    MK_WS_ENDING,  /* nothing more is read; the tunnel ends when everything is sent */
    MK_WS_BROKEN,  /* the tunnel is aborted */
    MK_WS_OVER,    /* on_close() was called */
    MK_WS_STATES
};

struct mk_ws_receive_state;

/* Keep this struct small: a server may have a very large number of sockets. */
struct mk_websocket {
    struct mk_timer timer;
    struct mk_list later; /* in the list of sockets to resume at the end of the loop iteration */
    struct mk_list open;  /* in the list of sockets that the worker closes when it drains */
    struct mk_request *request;
    struct mk_ws_worker *worker;
    const struct mk_websocket_options *options;
    void *ctx;
    mk_str subprotocol;
    struct mk_ws_queue queue;
    struct mk_ws_receive_state *inflow; /* NULL: the socket waits for the first byte of a message */
    struct mk_ws_deflate *coder;        /* NULL: no compression context is kept */
    char *reason;                       /* the client's close reason; NULL: none */
    uint8_t reason_len;
    struct mk_state state; /* enum mk_ws_state */
    uint16_t code;         /* for on_close() */
    struct mk_ws_extension offer;
    bool is_compressed : 1; /* permessage-deflate was negotiated */
    bool is_paused : 1;     /* the owner has paused the open socket */
    bool is_within : 1;     /* the tunnel is calling the socket, and will read its output afterwards */
    bool is_refusing : 1;   /* a message was rejected: on_writable() is due */
    bool is_stalled : 1;    /* reading was stopped because too much output is queued */
    bool was_heard : 1, has_sent : 1, was_pinged : 1; /* these events occurred since the timer was set */
    bool is_coding : 1;                               /* the compression contexts were used since the timer
                                                         was set */
    uint8_t parts_kind;                               /* opcode of the message being sent in parts; 0: none */
};

enum { MK_WS_DEFLATE_WINDOWS = MK_WS_EXTENSION_BITS_MAX - MK_WS_EXTENSION_BITS_MIN + 1 };

struct mk_ws_worker {
    struct mk_worker *worker;
    struct mk_list later;
    struct mk_list open; /* sockets */
    struct mk_deferred *iteration_end;
    struct mk_ws_deflate
        *coders[MK_WS_DEFLATE_WINDOWS]; /* shared compressors without context takeover, by window size; NULL
                                           until needed */
    struct mk_timer rest;               /* frees the memory of the shared compressors when none of them has
                                         * been used for DEFLATE_IDLE_MS */
    /* Cost of inflating the messages of all sockets in this iteration: see mk_ws_deflate_decompress(). */
    uint64_t inflated;
};

extern const struct mk_state_machine mk_ws_machine;

/* Changes the state. False: not allowed, for example because the socket is closed. */
bool mk_ws_set_state(struct mk_websocket *s, enum mk_ws_state to);
/* Makes the tunnel read output from the socket, and offer input, again. */
void mk_ws_resume(struct mk_websocket *s);
/* Like mk_ws_resume(), but at the end of the loop iteration. For use inside tunnel callbacks, where
 * mk_request_resume() would apply to the next callback of either direction. */
void mk_ws_resume_later(struct mk_websocket *s);
/* Resumes the sockets of mk_ws_resume_later(). */
void mk_ws_resume_all_later(struct mk_ws_worker *w);

/* Each returns the value of an option, or its default. */
size_t mk_ws_message_max(const struct mk_websocket *s);
size_t mk_ws_frame_max(const struct mk_websocket *s);
size_t mk_ws_queue_max(const struct mk_websocket *s);
uint32_t mk_ws_ping_ms(const struct mk_websocket *s);
uint32_t mk_ws_close_ms(const struct mk_websocket *s);
size_t mk_ws_compress_min(const struct mk_websocket *s);

/* Returns the shared deflate state for that window size, without context takeover; NULL: out of memory. */
struct mk_ws_deflate *mk_ws_shared_deflate(struct mk_ws_worker *w, unsigned bits);

#endif
