/* SPDX-License-Identifier: Apache-2.0 */
/* Local CA in the state folder: creates the CA once, and renews the certificate that the CA issues for this
 * machine. */
#ifndef MK_SERVER_LOCAL_CA_H
#define MK_SERVER_LOCAL_CA_H

#include <limits.h>

#include "event/tls_authority.h"
#include "os/local_names.h"

struct mk_local_ca {
    char folder[PATH_MAX];
    char certificate[PATH_MAX + 80]; /* file of the CA certificate, which clients must trust */
    char leaf[PATH_MAX + 80];        /* file with the certificate and key of the server */
    struct mk_tls_local_ca_info facts;
    bool is_new;                   /* mk_local_ca_ensure() has just created the CA */
    const char *issued_why;        /* why a new server certificate was issued (static text); NULL: not
                                    * issued */
    struct mk_local_names foreign; /* names of the machine that the CA may not certify */
};

/* How long to wait for another process that checks or creates the same files. */
enum { MK_LOCAL_CA_WAIT_MS = 10000 };

/* Creates the CA and the server certificate if they are missing, and renews the server certificate if it is
 * due. `extra` (NULL-terminated, or NULL): additional listen addresses; each different set gets its own
 * certificate. False: it failed; `error` holds the reason. */
bool mk_local_ca_ensure(const char *const *extra, unsigned wait_ms, struct mk_arena *arena,
                        struct mk_local_ca *out, struct mk_buf *error) MK_MUST_USE;

/* Explains how browsers and programs can be made to trust the CA. */
void mk_local_ca_write_trust_help(const struct mk_local_ca *a, struct mk_buf *out);

#endif
