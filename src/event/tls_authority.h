/* SPDX-License-Identifier: Apache-2.0 */
/* Local certificate authority: issues certificates for this machine's names and addresses to clients that
 * trust it. Files and renewal checks are up to the caller. */
#ifndef MK_EVENT_TLS_AUTHORITY_H
#define MK_EVENT_TLS_AUTHORITY_H

#include "base/buf.h"
#include "base/err.h"

struct mk_tls_local_ca;

/* Host names ("box", "box.local") and addresses ("192.0.2.1", "2001:db8::1"). */
struct mk_tls_names {
    const char *const *at;
    size_t n;
};

enum { MK_TLS_LOCAL_CA_YEARS = 10, MK_TLS_LEAF_DAYS = 90 };

struct mk_tls_local_ca_info {
    char name[128];        /* display name */
    char fingerprint[128]; /* SHA-256: "AB:CD:..." */
    int64_t since, until;  /* seconds since 1970 */
};

/* `pem` receives a key and its certificate, and must not move while it grows: see mk_buf_fixed(). */
struct mk_tls_local_ca_ops {
    /* Creates an authority, constrained to these names, the subdomains of those with a dot, names in .local,
     * private addresses and any IPv6 address. `host_name`: display name of the machine. */
    mk_err (*make)(mk_str host_name, const struct mk_tls_names *names, int64_t now, struct mk_buf *pem);
    /* Loads the output of make(). -EINVAL: invalid, with the reason in *error (static text). */
    mk_err (*open)(mk_str pem, struct mk_tls_local_ca **out, const char **error);
    void (*close)(struct mk_tls_local_ca *a);
    void (*facts)(const struct mk_tls_local_ca *a, struct mk_tls_local_ca_info *out);
    /* Writes only the certificate of the authority. */
    mk_err (*certificate)(const struct mk_tls_local_ca *a, struct mk_buf *pem);
    /* May the authority issue certificates for that name? */
    bool (*may)(const struct mk_tls_local_ca *a, const char *name);
    /* Issues a server certificate for all these names, each of which may() must allow. */
    mk_err (*issue)(const struct mk_tls_local_ca *a, const struct mk_tls_names *names, int64_t now,
                    struct mk_buf *pem);
    /* Returns why the result of issue() must be replaced (static text): two thirds of its lifetime have
     * passed, a name is missing, or it is invalid. NULL: it is still good. */
    const char *(*is_due)(const struct mk_tls_local_ca *a, mk_str pem, const struct mk_tls_names *names,
                          int64_t now);
};

#endif
