/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of HTTP/2: one request and its response. It lives in the arena of its exchange. */
#ifndef MK_PROTO_H2_STREAM_H
#define MK_PROTO_H2_STREAM_H

#include "proto/coldread.h"
#include "proto/h2.h"

enum { MK_H2_DRAIN_MAX = 64 * 1024 };

struct mk_h2_piece;

struct mk_h2_stream {
    struct mk_h2 *h2;
    struct mk_exchange *x;
    struct mk_h2_stream *next; /* in its bucket */
    struct mk_list turn;       /* in h2->woken or h2->ready */
    struct mk_list debt;       /* in h2->with_debts */
    struct mk_timer timer;
    struct mk_rate rate;
    uint64_t progress; /* bytes of content that moved, in or out */
    uint32_t id;
    uint8_t clock; /* enum mk_clock */
    uint8_t due;   /* the one that ran out, until somebody sees to it */
    struct mk_priority priority;

    /* Content of the request, on its way in. */
    struct mk_h2_piece *first, *last; /* what came and nobody has read yet */
    uint64_t received, announced;     /* MK_REQUEST_LENGTH_UNKNOWN */
    uint64_t content_max;             /* -EMSGSIZE above it */
    int64_t receive_window;
    uint32_t owed; /* as in struct mk_h2 */
    mk_err broken; /* what reading it came to, sticky */
    bool input_ended;
    bool unwanted; /* whatever still comes */
    bool expects_continue;
    bool wants_input; /* somebody waits for content */
    bool widened;     /* its window: somebody reads it */
    bool left;        /* by its client, and with it by those that work for it */

    /* The response, on its way out. */
    bool go; /* flow or source may be called (again) */
    bool head_sent, complete;
    bool tunnel;    /* it is no response any more, but another protocol */
    bool spent;     /* its source has said that this is the end */
    bool hears;     /* in a tunnel: somebody wants to know what the client says */
    bool head_only; /* no content goes with it */
    bool recorded;
    int64_t send_window;
    uint64_t to_send, sent;
    size_t head_from, head_to; /* where its head stands in the scratch, with what follows it at once, */
    unsigned head_flush;       /* if that was not flushed since */
    struct mk_coldread *coldread;
    enum mk_ending ending;
};

struct mk_h2_stream *mk_h2_stream_find(const struct mk_h2 *h2, uint32_t id);

/* A new one, whose request is still empty. NULL when memory is out. */
struct mk_h2_stream *mk_h2_stream_new(struct mk_h2 *h2, uint32_t id) MK_MUST_USE;
/* It is over: its record is made, if it was not, and its memory given back. */
void mk_h2_stream_end(struct mk_h2_stream *s, enum mk_ending ending);
/* The same, and the client is told why. */
void mk_h2_stream_reset(struct mk_h2_stream *s, enum mk_h2_error error, enum mk_ending ending);
/* All of the response is sent, the client has still content that nobody wants: it is let pass, if it is
 * little. */
void mk_h2_stream_drain(struct mk_h2_stream *s);
void mk_h2_stream_end_all(struct mk_h2 *h2, enum mk_ending ending);

/* The client has ended it, too. */
void mk_h2_stream_forget_reset(struct mk_h2 *h2, uint32_t id);
/* Did we end it, so lately that the client may not know? */
bool mk_h2_stream_was_reset(const struct mk_h2 *h2, uint32_t id);
/* Was it opened after we said which one was the last? Whatever is said on it is passed over. */
static inline bool mk_h2_stream_is_late(const struct mk_h2 *h2, uint32_t id)
{
    return h2->leaving && id > h2->final_stream;
}

/* Content that came, and perhaps the end of it. `padding` counted as content for the window. False: the
 * stream is no more.
 */
bool mk_h2_stream_take(struct mk_h2_stream *s, mk_str data, uint32_t padding, bool ends);
/* The client is told to go on, if it waits for that. */
void mk_h2_stream_send_continue(struct mk_h2_stream *s);
/* What came is not wanted, nor is what may still come. */
void mk_h2_stream_drop_input(struct mk_h2_stream *s);
/* The client will send no more on any stream: who waits for it learns so. */
void mk_h2_stream_cut_off(struct mk_h2 *h2);

/* It may go on, in this turn. */
void mk_h2_stream_wake(struct mk_h2_stream *s);
/* It has something to send. */
void mk_h2_stream_make_ready(struct mk_h2_stream *s);
void mk_h2_stream_set_clock(struct mk_h2_stream *s, enum mk_clock clock);
/* Waits for whoever makes content, or for what he waits for. */
void mk_h2_stream_wait(struct mk_h2_stream *s);

/* WINDOW_UPDATE for all that was read. */
void mk_h2_stream_settle(struct mk_h2 *h2);

#endif
