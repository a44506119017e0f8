/* SPDX-License-Identifier: Apache-2.0 */
/* Quota for spooled bodies of a worker (monkey/spool.h): memory and disk space, in total and per client
 * address. Requests may use all of SpoolMax, and those of one address half of it. Responses may use half of
 * SpoolMax, and those of one address a quarter, so that slow readers leave space for uploads. */
#ifndef MK_WEB_SPOOL_QUOTA_H
#define MK_WEB_SPOOL_QUOTA_H

#include <monkey/addr.h>
#include <monkey/spool.h>

#include "base/err.h"
#include "base/hash.h"
#include "event/offload.h"

enum { MK_SPOOL_BUCKETS = 64 };

/* Usage of one client address: bodies being spooled or waiting to be read. */
struct mk_spool_client {
    struct mk_spool_client *next;
    uint8_t ip[16];
    unsigned n;         /* number of requests and responses that use this entry */
    size_t kept;        /* bytes of buffers in memory */
    uint64_t stored;    /* bytes of request files */
    uint64_t responses; /* bytes of response files */
};

/* The quota of one worker. All zero: nothing is written to disk. */
struct mk_spool_quota {
    const char *folder;        /* NULL: no plugin enabled spooling */
    uint64_t max;              /* limit of all bytes in files; UINT64_MAX: none */
    uint64_t stored;           /* bytes of requests and responses */
    uint64_t responses;        /* bytes of responses alone */
    struct mk_offload *helper; /* writes the files in another thread; NULL: the caller writes them */
    struct mk_hash_key hash_key;
    struct mk_spool_client *clients[MK_SPOOL_BUCKETS];
};

/* ---- Shares ---- */

/* Returns the client's entry, with its reference count incremented. NULL: out of memory. */
struct mk_spool_client *mk_spool_client_acquire(struct mk_spool_quota *all, const struct mk_addr *peer);
/* Decrements the reference count. */
void mk_spool_client_release(struct mk_spool_quota *all, struct mk_spool_client *c);
/* May the client use that many more bytes of memory? */
bool mk_spool_client_may_buffer(const struct mk_spool_client *c, size_t more);
/* Returns the maximum disk space for one request body. */
uint64_t mk_spool_quota_request_max(const struct mk_spool_quota *all);
/* Charges bytes to be written to a file. Returns 0; -EDQUOT: quota exceeded; -EMSGSIZE: with these bytes, a
 * request of `already` bytes exceeds the maximum that its client may ever use; -EOPNOTSUPP: no spool
 * folder. */
mk_err mk_spool_quota_charge_request(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t already,
                                     uint64_t n) MK_MUST_USE;
void mk_spool_quota_release_request(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t n);
/* Charges bytes of a response; never returns -EMSGSIZE. */
mk_err mk_spool_quota_charge_response(struct mk_spool_quota *all, struct mk_spool_client *c,
                                      uint64_t n) MK_MUST_USE;
void mk_spool_quota_release_response(struct mk_spool_quota *all, struct mk_spool_client *c, uint64_t n);

#endif
