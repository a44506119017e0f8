/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a certificate that a plugin renews: files beside FOLDER/certificates/NAME.pem, which are described in
 * monkey/tls.h. */
#ifndef MK_TLS_INVENTORY_STATE_H
#define MK_TLS_INVENTORY_STATE_H

#include "base/str.h"

enum { MK_TLS_INVENTORY_REASON_MAX = 512 };

struct mk_tls_inventory_state {
    int64_t renewal; /* next renewal, seconds since 1970; 0: unknown */
    int64_t retry;   /* next attempt after a failure; 0: there was no failure */
    uint64_t failures;
    char reason[MK_TLS_INVENTORY_REASON_MAX]; /* of the last failure */
    const char *damaged; /* name of the folder whose file is not valid JSON; NULL: none */
};

/* Members of a state file. Other members are ignored. */
struct mk_tls_inventory_members {
    int64_t next, at, until, failures;
    char why[MK_TLS_INVENTORY_REASON_MAX];
};

/* Parses a JSON object whose members are strings, numbers and words. False: the text is something else. */
bool mk_tls_inventory_state_parse(mk_str text, struct mk_tls_inventory_members *out) MK_MUST_USE;
/* Reads the state of the certificate in that file. */
void mk_tls_inventory_state_read(const char *certificate, struct mk_tls_inventory_state *out);

#endif
