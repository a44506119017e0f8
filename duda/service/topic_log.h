/* SPDX-License-Identifier: Apache-2.0 */
/* The kept messages of topics, in memory that all workers of the server share, also across reloads. Each
 * topic keeps its latest messages, in at most a quarter of the memory (or a single message).
 *
 * When the memory is full, topics of similar size compete: a size class contains the topics that use from 2^i
 * to 2^(i+1) - 1 blocks. In the class that uses the most memory, the topic that was published to least recently
 * loses its oldest messages. So a flood into one topic drops messages of that topic, and a flood of small
 * topics drops small topics, not a large one.
 *
 * A worker may die at any instruction: if it dies in a function below, the log is emptied, and readers see a
 * gap. */
#ifndef DUDA_SERVICE_TOPIC_LOG_H
#define DUDA_SERVICE_TOPIC_LOG_H

#include <monkey/buf.h>
#include <monkey/text.h>

#include "service/topic_id.h"

struct duda_topic_log_memory;

/* One process's view of the shared memory. */
struct duda_topic_log {
    struct duda_topic_log_memory *memory;
    uint32_t n_blocks;
};

/* Initializes zeroed memory of `size` bytes (64 KB or more); memory that is already in use stays unchanged.
 * Called in the master, before workers start. Returns 0 or a negative errno value. */
int duda_topic_log_init(struct duda_topic_log *log, void *memory, size_t size);

/* What a topic keeps. */
struct duda_topic_log_rule {
    uint32_t keep;   /* number of messages */
    uint32_t keep_s; /* maximum age of a message; 0: any */
};

/* Appends a message, and drops old messages that exceed the limits of the rule. Sets *id to the ID of the new
 * message, and *prev to the ID of the message before it, or to zero if there was none. `now_ms` is the wall clock. Returns 0;
 * -EMSGSIZE: the message does not fit; -EBUSY: another process has held the lock of the log for too long. */
int duda_topic_log_append(const struct duda_topic_log *log, mk_str topic,
                          const struct duda_topic_log_rule *rule, unsigned char kind, mk_str text,
                          uint64_t now_ms, struct duda_topic_id *prev, struct duda_topic_id *id);
/* Reads the first message after `after` (zero: the oldest one) that is not too old, and appends its text to
 * *out. Sets *has_gap if messages between the two are no longer kept, or if `after` is no ID of this topic.
 * Returns 1; 0: there is none, and *id is the ID of the last message (zero: none); or -EBUSY. */
int duda_topic_log_read(const struct duda_topic_log *log, mk_str topic, const struct duda_topic_id *after,
                        uint64_t now_ms, struct mk_buf *out, unsigned char *kind, struct duda_topic_id *id,
                        bool *has_gap);
/* Sets *id to the ID of the last message; zero: the topic has none. Returns 0 or -EBUSY. */
int duda_topic_log_last(const struct duda_topic_log *log, mk_str topic, struct duda_topic_id *id);
/* Returns the number of messages that all calls have passed over to find one. Unit tests limit it. */
uint64_t duda_topic_log_steps(const struct duda_topic_log *log);

#endif
