/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "web/spools.h"

enum {
    CLIENT_MAX = 256 * 1024, /* bytes of buffers of one client */
    CLIENT_SHARE = 2,        /* one client gets this part of the disk space for its requests, */
    RESPONSES_SHARE = 2,     /* all responses together this part, */
    RESPONSE_SHARE = 4,      /* and those of one client this one */
};

/* ---- Clients ---- */

static struct mk_spool_client **bucket_of(struct mk_spools *all, const uint8_t ip[16])
{
    return &all->clients[mk_hash(&all->hash_key, mk_str_of((const char *)ip, 16)) % MK_SPOOL_BUCKETS];
}

struct mk_spool_client *mk_spool_client_enter(struct mk_spools *all, const struct mk_addr *peer)
{
    struct mk_addr one;
    mk_addr_client(peer, &one);
    struct mk_spool_client **first = bucket_of(all, one.ip), *c = *first;
    while (c && memcmp(c->ip, one.ip, sizeof c->ip) != 0)
        c = c->next;
    if (!c) {
        c = mk_mem_zalloc(1, sizeof *c);
        if (!c)
            return NULL;
        memcpy(c->ip, one.ip, sizeof c->ip);
        c->next = *first;
        *first = c;
    }
    c->n++;
    return c;
}

void mk_spool_client_leave(struct mk_spools *all, struct mk_spool_client *c)
{
    if (--c->n)
        return;
    struct mk_spool_client **at = bucket_of(all, c->ip);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    mk_mem_free(c);
}

bool mk_spool_client_fits(const struct mk_spool_client *c, size_t more)
{
    return c->kept + more <= CLIENT_MAX;
}

/* ---- Files ---- */

uint64_t mk_spool_request_share(const struct mk_spools *all)
{
    return all->max / CLIENT_SHARE;
}

static bool is_above(uint64_t used, uint64_t n, uint64_t max)
{
    return used > max || n > max - used;
}

mk_err mk_spool_charge(struct mk_spools *all, struct mk_spool_client *c, uint64_t already, uint64_t n)
{
    uint64_t share = mk_spool_request_share(all);
    if (!all->folder)
        return -EOPNOTSUPP;
    if (is_above(already, n, share))
        return -EFBIG;
    if (is_above(all->stored, n, all->max) || is_above(c->stored, n, share))
        return -EDQUOT;
    all->stored += n;
    c->stored += n;
    return 0;
}

void mk_spool_discharge(struct mk_spools *all, struct mk_spool_client *c, uint64_t n)
{
    all->stored -= n;
    c->stored -= n;
}

mk_err mk_spool_charge_response(struct mk_spools *all, struct mk_spool_client *c, uint64_t n)
{
    if (!all->folder)
        return -EOPNOTSUPP;
    if (is_above(all->stored, n, all->max) || is_above(all->responses, n, all->max / RESPONSES_SHARE) ||
        is_above(c->responses, n, all->max / RESPONSE_SHARE))
        return -EDQUOT;
    all->stored += n;
    all->responses += n;
    c->responses += n;
    return 0;
}

void mk_spool_discharge_response(struct mk_spools *all, struct mk_spool_client *c, uint64_t n)
{
    all->stored -= n;
    all->responses -= n;
    c->responses -= n;
}
