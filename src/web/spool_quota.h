/* SPDX-License-Identifier: Apache-2.0 */
/* What limits the content that a worker spools (monkey/spool.h): memory and disk space, of all clients and of
 * each client address. Requests may use all of SpoolMax, and one address half of it; responses half of it, and
 * one address a quarter: clients that read slowly leave room for uploads. */
#ifndef MK_WEB_SPOOL_QUOTA_H
#define MK_WEB_SPOOL_QUOTA_H

#include <monkey/addr.h>
#include <monkey/spool.h>

#include "base/err.h"
#include "base/hash.h"
#include "net/offload.h"

enum { MK_SPOOL_BUCKETS = 64 };

/* What one client address has: content that is being spooled, or is waiting to be used. */
struct mk_spool_client {
    struct mk_spool_client *next;
    uint8_t ip[16];
    unsigned n;         /* requests and responses */
    size_t kept;        /* bytes of buffers */
    uint64_t stored;    /* bytes of requests in files, */
    uint64_t responses; /* and of responses */
};

/* One for each worker. All zero: nothing leaves the memory. */
struct mk_spool_quota {
    const char *folder;        /* NULL: no plugin has asked for one */
    uint64_t max;              /* bytes in files, of all clients; UINT64_MAX: no limit */
    uint64_t stored;           /* of requests and responses, */
    uint64_t responses;        /* and of responses alone */
    struct mk_offload *helper; /* writes the files; NULL: the caller does */
    struct mk_hash_key hash_key;
    struct mk_spool_client *clients[MK_SPOOL_BUCKETS];
};

/* ---- Shares ---- */

/* The entry of the client, with one user more. NULL: no memory. */
struct mk_spool_client *mk_spool_client_acquire(struct mk_spool_quota *all, const struct mk_addr *peer);
/* One user less. */
void mk_spool_client_release(struct mk_spool_quota *all, struct mk_spool_client *c);
/* May the client have so many bytes of buffers more? */
bool mk_spool_client_may_buffer(const struct mk_spool_client *c, size_t more);
/* The most that the content of one request may take of the disk. */
uint64_t mk_spool_quota_request_max(const struct mk_spool_quota *all);
/* Counts bytes that are to be written to a file. 0; -EDQUOT: too much is there already; -EFBIG: one request
 * of `already` bytes and these has more than its client may ever have; -EOPNOTSUPP: there is no folder. */
mk_err mk_spool_quota_charge_request(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t already,
                                     uint64_t n) MK_MUST_USE;
void mk_spool_quota_release_request(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t n);
/* The same for a response: never -EFBIG. */
mk_err mk_spool_quota_charge_response(struct mk_spool_quota *all, struct mk_spool_client *c,
                                      uint64_t n) MK_MUST_USE;
void mk_spool_quota_release_response(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t n);

#endif
