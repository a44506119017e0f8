/* SPDX-License-Identifier: Apache-2.0 */
#include "service/topic_replay.h"

#include <errno.h>
#include <monkey/clock.h>

/* Sets the position after the last message that is kept now. */
static int skip_kept_messages(struct duda_ctx *d, mk_str topic, struct duda_topic_position *at)
{
    const struct duda_topic_log *log = duda_topics_log(d->worker_ctx);
    const struct duda_topic_relay *relay = d->worker_ctx->relay;
    mk_str id;
    if (log)
        return duda_topic_log_last(log, topic, &at->cursor) ? -EAGAIN : 0;
    int e = relay->last_kept(d, relay->ctx, topic, &id);
    return e ? e : duda_topic_id_parse(id, &at->cursor) ? 0 : -EPROTO;
}

int duda_topic_replay_begin(struct duda_ctx *d, mk_str topic, mk_str last_id, struct duda_topic_position *at)
{
    static const struct duda_topic_id unknown = {1, 0}; /* the ID of no message: results in a gap */
    at->is_from_start = false;
    if (!last_id.len)
        return skip_kept_messages(d, topic, at);
    if (!duda_topic_id_parse(last_id, &at->cursor))
        at->cursor = unknown;
    at->is_from_start = duda_topic_id_is_none(&at->cursor);
    return 0;
}

static int read_log(const struct duda_topic_log *log, mk_str topic, const struct duda_topic_position *at,
                    struct duda_topic_kept *out)
{
    unsigned char kind = MK_WEBSOCKET_TEXT;
    bool has_gap;
    int e = duda_topic_log_read(log, topic, &at->cursor, mk_clock_unix_ms(), &out->bytes, &kind, &out->id,
                                &has_gap);
    if (e <= 0)
        return e;
    out->kind = kind == MK_WEBSOCKET_BINARY ? MK_WEBSOCKET_BINARY : MK_WEBSOCKET_TEXT;
    out->text = mk_buf_str(&out->bytes);
    out->prev = out->id;
    if (!--out->prev.number)
        out->prev.epoch = 0;
    return out->bytes.failed ? -ENOMEM : 1;
}

static int read_relay(struct duda_ctx *d, mk_str topic, const struct duda_topic_position *at,
                      struct duda_topic_kept *out)
{
    const struct duda_topic_relay *relay = d->worker_ctx->relay;
    char after[DUDA_TOPIC_ID_TEXT_SIZE];
    mk_str prev = MK_STR_NULL, id = MK_STR_NULL;
    int e = relay->read_kept(d, relay->ctx, topic, duda_topic_id_format(&at->cursor, after), at->keep_s,
                             &out->kind, &out->text, &prev, &id);
    if (e < 0)
        return e;
    return !duda_topic_id_parse(id, &out->id) || (e && !duda_topic_id_parse(prev, &out->prev)) ? -EPROTO : e;
}

static void init_result(struct duda_topic_kept *out)
{
    *out =
        (struct duda_topic_kept){.bytes = mk_buf_growing(DUDA_TOPIC_MESSAGE_MAX), .kind = MK_WEBSOCKET_TEXT};
}

static int detect_gap(int e, const struct duda_topic_position *at, struct duda_topic_kept *out)
{
    if (e == 0)
        out->prev = out->id;
    out->has_gap = e >= 0 && !at->is_from_start && !duda_topic_id_eq(&out->prev, &at->cursor);
    return e;
}

int duda_topic_replay_log(const struct duda_topic_log *log, mk_str topic,
                          const struct duda_topic_position *at, struct duda_topic_kept *out)
{
    init_result(out);
    return detect_gap(read_log(log, topic, at, out), at, out);
}

int duda_topic_replay_next(struct duda_ctx *d, mk_str topic, const struct duda_topic_position *at,
                           struct duda_topic_kept *out)
{
    const struct duda_topic_log *log = duda_topics_log(d->worker_ctx);
    if (log)
        return duda_topic_replay_log(log, topic, at, out);
    init_result(out);
    return detect_gap(read_relay(d, topic, at, out), at, out);
}
