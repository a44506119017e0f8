/* SPDX-License-Identifier: Apache-2.0 */
#include "web/spool_quota.h"
#include "base/mem.h"

enum {
    CLIENT_MAX = 256 * 1024, /* buffer bytes per client */
    CLIENT_SHARE = 2,        /* share of the disk space for one client's requests: 1/n */
    RESPONSES_SHARE = 2,     /* share of the disk space for all responses: 1/n */
    RESPONSE_SHARE = 4,      /* share of the disk space for one client's responses: 1/n */
};

/* ---- Clients ---- */

static struct mk_spool_client **client_bucket(struct mk_spool_quota *all, const uint8_t ip[16])
{
    return &all->clients[mk_hash(&all->hash_key, mk_str_of((const char *)ip, 16)) % MK_SPOOL_BUCKETS];
}

struct mk_spool_client *mk_spool_client_acquire(struct mk_spool_quota *all, const struct mk_addr *peer)
{
    struct mk_addr one;
    mk_addr_client_prefix(peer, &one);
    struct mk_spool_client **first = client_bucket(all, one.ip), *c = *first;
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

void mk_spool_client_release(struct mk_spool_quota *all, struct mk_spool_client *c)
{
    if (--c->n)
        return;
    struct mk_spool_client **at = client_bucket(all, c->ip);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    mk_mem_free(c);
}

bool mk_spool_client_may_buffer(const struct mk_spool_client *c, size_t more)
{
    return c->kept + more <= CLIENT_MAX;
}

/* ---- Files ---- */

uint64_t mk_spool_quota_request_max(const struct mk_spool_quota *all)
{
    return all->max / CLIENT_SHARE;
}

static bool would_exceed(uint64_t used, uint64_t n, uint64_t max)
{
    return used > max || n > max - used;
}

mk_err mk_spool_quota_charge_request(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t already,
                                     uint64_t n)
{
    uint64_t share = mk_spool_quota_request_max(all);
    if (!all->folder)
        return -EOPNOTSUPP;
    if (would_exceed(already, n, share))
        return -EMSGSIZE;
    if (would_exceed(all->stored, n, all->max) || would_exceed(c->stored, n, share))
        return -EDQUOT;
    all->stored += n;
    c->stored += n;
    return 0;
}

void mk_spool_quota_release_request(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t n)
{
    all->stored -= n;
    c->stored -= n;
}

mk_err mk_spool_quota_charge_response(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t n)
{
    if (!all->folder)
        return -EOPNOTSUPP;
    if (would_exceed(all->stored, n, all->max) ||
        would_exceed(all->responses, n, all->max / RESPONSES_SHARE) ||
        would_exceed(c->responses, n, all->max / RESPONSE_SHARE))
        return -EDQUOT;
    all->stored += n;
    all->responses += n;
    c->responses += n;
    return 0;
}

void mk_spool_quota_release_response(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t n)
{
    all->stored -= n;
    all->responses -= n;
    c->responses -= n;
}
