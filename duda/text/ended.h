/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of sealed sessions that have ended before their time, in memory that all workers share. Its size is
 * fixed: when a line is full, a session of a visitor who was not known gives way first, the new one included; then one of
 * the client that has most of this line; then the one that would be over first. So a client that ends sessions in a
 * loop makes the server forget its own. There are no locks: an entry is one word, so a worker that dies leaves nothing
 * inconsistent. */
#ifndef DUDA_TEXT_ENDED_H
#define DUDA_TEXT_ENDED_H

#include <monkey/address.h>
#include <monkey/text.h>
#include <stdatomic.h>

enum { DUDA_ENDED_NUMBER = 16, DUDA_ENDED_SLOTS = 8, DUDA_ENDED_LINES = 8192 };

struct duda_ended {
    _Atomic uint32_t is_ready;
    struct mk_hash_key key; /* secret, so that clients cannot choose their line */
    struct {
        _Atomic uint64_t slots[DUDA_ENDED_SLOTS];
    } lines[DUDA_ENDED_LINES];
};

/* Uses zeroed memory, or such that is in use already. In the master, before workers start. */
void duda_ended_begin(struct duda_ended *e);
/* Whose session it was. */
struct duda_ended_visitor {
    const struct mk_peer *client; /* see mk_peer_client() */
    bool is_known;                /* it was renewed: the visitor had logged in */
};
/* Times are seconds since 1970. The number is among the ended ones until `until`, at most a year ahead. */
void duda_ended_add(struct duda_ended *e, const unsigned char number[DUDA_ENDED_NUMBER],
                    const struct duda_ended_visitor *visitor, int64_t now, int64_t until);
bool duda_ended_has(const struct duda_ended *e, const unsigned char number[DUDA_ENDED_NUMBER], int64_t now);

#endif
