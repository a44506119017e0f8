/* SPDX-License-Identifier: Apache-2.0 */
/* Connection of an in-memory test client. */
#ifndef MK_TEST_CLIENT_H
#define MK_TEST_CLIENT_H

#include "base/err.h"
#include "lib/test_client/test_client_type.h"

/* Opens a new connection if the previous one was closed. */
mk_err mk_test_client_reconnect(struct mk_test_client *p) MK_MUST_USE;

#endif
