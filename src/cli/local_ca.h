/* SPDX-License-Identifier: Apache-2.0 */
/* The local authority in the state folder: created once; the certificate it issues for this machine is
 * kept fresh. */
#ifndef MK_CLI_LOCAL_CA_H
#define MK_CLI_LOCAL_CA_H

#include <limits.h>

#include "net/tls_authority.h"
#include "os/local_names.h"

struct mk_local_ca {
    char folder[PATH_MAX];
    char certificate[PATH_MAX + 80]; /* to be trusted */
    char leaf[PATH_MAX + 80];        /* certificate and key of our servers */
    struct mk_tls_local_ca_info facts;
    bool is_new;                   /* it was made just now */
    const char *issued_why;        /* static text: why there is a new leaf; NULL: the old one is good */
    struct mk_local_names foreign; /* what the machine is called, and the authority may not vouch for */
};

/* How long to wait for another process that does the same. */
enum { MK_LOCAL_CA_WAIT_MS = 10000 };

/* Checks what exists, and creates what is missing or must be replaced. `extra` (NULL-terminated, or NULL)
 * are further listening addresses: each different set of them gets its own leaf. False: `why` says it in
 * lines for people. */
bool mk_local_ca_ensure(const char *const *extra, unsigned wait_ms, struct mk_arena *arena,
                        struct mk_local_ca *out, struct mk_buf *why) MK_MUST_USE;

/* How browsers and programs come to trust it. */
void mk_local_ca_write_trust_help(const struct mk_local_ca *a, struct mk_buf *out);

#endif
