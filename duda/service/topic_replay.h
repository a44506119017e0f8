/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kept messages of a topic for a subscriber that must not miss any, from the shared memory of this
 * machine or from a relay. */
#ifndef DUDA_SERVICE_TOPIC_REPLAY_H
#define DUDA_SERVICE_TOPIC_REPLAY_H

#include "service/topics.h"

/* A kept message that was read. */
struct duda_topic_kept {
    struct mk_buf bytes; /* owns the memory of `text` if the text comes from the log */
    mk_str text;         /* from a relay: in the memory of the handler */
    enum mk_websocket_kind kind;
    struct duda_topic_id prev, id;
    bool has_gap; /* messages before this one are missing, or before the end if no message was found */
};

/* Sets *at to the position after the message `last_id`; absent or empty: after the last message that is kept
 * now. Returns 0; -EAGAIN: the log cannot be read now; or an error of the relay. May wait if there is a
 * relay. */
int duda_topic_replay_begin(struct duda_ctx *d, mk_str topic, mk_str last_id, struct duda_topic_position *at);

/* Reads the next kept message. Returns 1; 0: there is none, and out->prev is the ID of the last message;
 * -EBUSY: the log cannot be read now; or another error. The caller frees out->bytes in all cases. May wait if
 * there is a relay. */
int duda_topic_replay_next(struct duda_ctx *d, mk_str topic, const struct duda_topic_position *at,
                           struct duda_topic_kept *out);
/* The same for the log of this machine, without a handler. Never waits. */
int duda_topic_replay_log(const struct duda_topic_log *log, mk_str topic,
                          const struct duda_topic_position *at, struct duda_topic_kept *out);

#endif
