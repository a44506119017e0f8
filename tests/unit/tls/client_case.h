/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that each use one instance of client_fixture.h. */
#ifndef MK_UNIT_TLS_CLIENT_CASE_H
#define MK_UNIT_TLS_CLIENT_CASE_H

#include "unit/tls/client_fixture.h"

static struct tls_client_fixture c;

static inline void setup(void)
{
    tls_client_setup(&c);
}

/* Limits the client to this TLS version. */
static inline void use_version(int version)
{
    assert_true(SSL_CTX_set_max_proto_version(c.client->ctx, version));
}

#endif
