/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that each use one instance of calls.h. */
#ifndef MK_UNIT_TLS_CALLCASE_H
#define MK_UNIT_TLS_CALLCASE_H

#include "unit/tls/calls.h"

static struct calls c;

static inline void setup(void)
{
    calls_setup(&c);
}

/* Limits the client to this version. */
static inline void use_version(int version)
{
    assert_true(SSL_CTX_set_max_proto_version(c.client->ctx, version));
}

#endif
