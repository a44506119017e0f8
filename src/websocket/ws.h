/* SPDX-License-Identifier: Apache-2.0 */
/* What a socket is made of, and what a worker keeps for all of them. */
#ifndef MK_WEBSOCKET_WS_H
#define MK_WEBSOCKET_WS_H

#include <monkey/sm.h>
#include <monkey/websocket.h>
#include <monkey/worker.h>

#include "base/list.h"
#include "http/ws_extension.h"
#include "websocket/ws_deflate.h"
#include "websocket/ws_queue.h"

enum mk_ws_state {
    MK_WS_HANDSHAKE, /* a failure does not call on_close() */
    MK_WS_OPEN,
    MK_WS_CLOSING, /* we have closed it, and wait for the client to do so; messages are dropped */
    MK_WS_ENDING,  /* nothing more is read; when all is sent, the tunnel ends */
    MK_WS_BROKEN,  /* the tunnel is aborted */
    MK_WS_OVER,    /* on_close() is called */
    MK_WS_STATES
};

struct mk_ws_receive_state;

/* A server may have very many: keep it small. */
struct mk_websocket {
    struct mk_timer timer;
    struct mk_list later; /* among those that are woken when the turn of the loop ends */
    struct mk_list open;  /* among the sockets that the worker closes when it drains */
    struct mk_request *request;
    struct mk_ws_worker *worker;
    const struct mk_websocket_options *options;
    void *ctx;
    mk_str subprotocol;
    struct mk_ws_queue queue;
    struct mk_ws_receive_state *inflow; /* NULL: it waits for the first byte of a message */
    struct mk_ws_deflate *coder;        /* NULL: no context is kept */
    char *reason;                       /* of the client; NULL: none */
    uint8_t reason_len;
    struct mk_sm state; /* enum mk_ws_state */
    uint16_t code;      /* for on_close() */
    struct mk_ws_extension offer;
    bool is_compressed : 1; /* permessage-deflate was agreed upon */
    bool is_paused : 1;     /* by its owner, while it is open */
    bool is_within : 1;     /* its tunnel calls us, and will ask for output by itself */
    bool is_refusing : 1;   /* a message was refused: on_room() is due */
    bool is_stalled : 1;    /* it stopped reading because too much waits to be sent */
    bool was_heard : 1, has_sent : 1, was_pinged : 1; /* since its timer was set */
    bool is_coding : 1;                               /* its contexts were used since then */
    uint8_t parts_kind;                               /* of the message whose parts are sent; 0: none is */
};

enum { MK_WS_DEFLATE_WINDOWS = MK_WS_EXTENSION_BITS_MAX - MK_WS_EXTENSION_BITS_MIN + 1 };

struct mk_ws_worker {
    struct mk_worker *worker;
    struct mk_list later;
    struct mk_list open; /* sockets */
    struct mk_deferred *turn_end;
    struct mk_ws_deflate
        *coders[MK_WS_DEFLATE_WINDOWS]; /* without contexts, by their window; NULL until they are needed */
    struct mk_timer rest;               /* runs from their last use until they give memory back */
    uint64_t inflated; /* in this turn of the loop: what messages of all sockets cost to inflate */
};

extern const struct mk_sm_machine mk_ws_machine;

/* Changes the state, if the table allows it; false: it does not, as for a socket that is closed already. */
bool mk_ws_set_state(struct mk_websocket *s, enum mk_ws_state to);
/* The tunnel is to ask for output, or to offer input again. */
void mk_ws_resume(struct mk_websocket *s);
/* It is to offer input again, when the turn of the loop is over. For calls of the tunnel itself, where a
 * request to be resumed is for the next call, be it that for input or that for output. */
void mk_ws_resume_later(struct mk_websocket *s);
/* Wakes those. */
void mk_ws_resume_all_later(struct mk_ws_worker *w);

/* The value of an option, or its default. */
size_t mk_ws_message_max(const struct mk_websocket *s);
size_t mk_ws_frame_max(const struct mk_websocket *s);
size_t mk_ws_queue_max(const struct mk_websocket *s);
uint32_t mk_ws_ping_ms(const struct mk_websocket *s);
uint32_t mk_ws_close_ms(const struct mk_websocket *s);
size_t mk_ws_compress_min(const struct mk_websocket *s);

/* The coder without contexts for that window; NULL when memory is out. */
struct mk_ws_deflate *mk_ws_shared_deflate(struct mk_ws_worker *w, unsigned bits);

#endif
