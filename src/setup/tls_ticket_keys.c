/* SPDX-License-Identifier: Apache-2.0 */
#include "setup/tls_ticket_keys.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/* The keys in shared memory, which is page-aligned, as madvise() requires. */
struct tickets {
    struct mk_tls_tickets tickets;
    bool has_key;
};

static mk_err generate_ticket_key(struct mk_tls_ticket_key *key)
{
    ssize_t n = getrandom(key, sizeof *key, 0);
    return n == (ssize_t)sizeof *key ? 0 : n < 0 ? mk_err_last() : -EIO;
}

struct mk_tls_tickets *mk_tls_ticket_keys_get(struct mk_shared_state *shared)
{
    struct tickets *t = mk_shared_state_get_memory(shared, MK_STR("server: tickets"), sizeof *t);
    if (!t)
        return NULL;
    if (!t->has_key) {
        (void)madvise(t, sizeof *t, MADV_DONTDUMP); /* keeps the keys out of core dumps */
        if (generate_ticket_key(&t->tickets.keys[t->tickets.newest % MK_TLS_TICKET_KEYS]))
            return NULL;
        t->has_key = true;
    }
    return &t->tickets;
}

/* Workers read without locking: a key is complete before it becomes the newest, and the slot written next
 * holds a key that no worker uses any longer. */
mk_err mk_tls_ticket_keys_rotate(struct mk_tls_tickets *t)
{
    uint32_t next = t->newest + 1;
    struct mk_tls_ticket_key key;
    mk_err e = generate_ticket_key(&key);
    if (e)
        return e;
    t->keys[next % MK_TLS_TICKET_KEYS] = key;
    explicit_bzero(&key, sizeof key);
    explicit_bzero(&t->keys[(next + 1) % MK_TLS_TICKET_KEYS], sizeof key);
    __atomic_store_n(&t->newest, next, __ATOMIC_RELEASE);
    return 0;
}
