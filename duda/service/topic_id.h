/* SPDX-License-Identifier: Apache-2.0 */
/* IDs of kept messages: "EPOCH-NUMBER", like those of Redis Streams. Later messages of a topic have greater
 * IDs. */
#ifndef DUDA_SERVICE_TOPIC_ID_H
#define DUDA_SERVICE_TOPIC_ID_H

#include <monkey/str.h>
#include <stdbool.h>
#include <stdint.h>

enum { DUDA_TOPIC_ID_TEXT_SIZE = 42 };

/* Both are zero: no message. */
struct duda_topic_id {
    uint64_t epoch, number;
};

static inline bool duda_topic_id_eq(const struct duda_topic_id *a, const struct duda_topic_id *b)
{
    return a->epoch == b->epoch && a->number == b->number;
}

static inline bool duda_topic_id_less(const struct duda_topic_id *a, const struct duda_topic_id *b)
{
    return a->epoch != b->epoch ? a->epoch < b->epoch : a->number < b->number;
}

static inline bool duda_topic_id_is_none(const struct duda_topic_id *id)
{
    return !id->epoch && !id->number;
}

/* Parses "EPOCH-NUMBER", or "0". Returns false, and sets *out to none, for any other text. */
bool duda_topic_id_parse(mk_str text, struct duda_topic_id *out);
/* Writes the ID, and returns it without the NUL that follows. */
mk_str duda_topic_id_format(const struct duda_topic_id *id, char out[DUDA_TOPIC_ID_TEXT_SIZE]);

#endif
