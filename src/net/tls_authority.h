/* SPDX-License-Identifier: Apache-2.0 */
/* The authority of one machine, seen from above: it vouches for the names and addresses of that machine, to
 * whoever was told to trust it. Files, and when to look at them, are for others to know. */
#ifndef MK_NET_TLS_AUTHORITY_H
#define MK_NET_TLS_AUTHORITY_H

#include "base/buf.h"
#include "base/err.h"

struct mk_tls_authority;

/* Of hosts ("box", "box.local") and addresses ("192.0.2.1", "2001:db8::1"). */
struct mk_tls_names {
    const char *const *at;
    size_t n;
};

enum { MK_TLS_AUTHORITY_YEARS = 10, MK_TLS_LEAF_DAYS = 90 };

struct mk_tls_authority_facts {
    char name[128];        /* that people find it by */
    char fingerprint[128]; /* SHA-256: "AB:CD:..." */
    int64_t since, until;  /* seconds since 1970 */
};

/* `pem` gets a key and its certificate, and must not move while it grows: see mk_buf_fixed. */
struct mk_tls_authority_ops {
    /* A new one. It will only ever vouch for these names and those below them (but not below one without a
     * dot), names in .local, private addresses and any of IPv6. `who` tells people which machine it belongs
     * to. */
    mk_err (*make)(mk_str who, const struct mk_tls_names *names, int64_t now, struct mk_buf *pem);
    /* What make() wrote. -EINVAL, and *why is static text: it is something else. */
    mk_err (*open)(mk_str pem, struct mk_tls_authority **out, const char **why);
    void (*close)(struct mk_tls_authority *a);
    void (*facts)(const struct mk_tls_authority *a, struct mk_tls_authority_facts *out);
    /* Its certificate alone. */
    mk_err (*certificate)(const struct mk_tls_authority *a, struct mk_buf *pem);
    /* Is it allowed to vouch for that name? */
    bool (*may)(const struct mk_tls_authority *a, const char *name);
    /* A certificate for a server of all these names, each of which it may() vouch for. */
    mk_err (*issue)(const struct mk_tls_authority *a, const struct mk_tls_names *names, int64_t now,
                    struct mk_buf *pem);
    /* Why what issue() wrote has to be replaced (static text), NULL if it has not: two thirds of its time
     * are over, or one of the names is missing, or it is something else. */
    const char *(*is_due)(const struct mk_tls_authority *a, mk_str pem, const struct mk_tls_names *names,
                          int64_t now);
};

#endif
