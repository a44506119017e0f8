/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing certificates while the server is running: mk_server_replace_certificate(). */
#ifndef MK_LIB_SERVER_CERTIFICATE_H
#define MK_LIB_SERVER_CERTIFICATE_H

#include "lib/server_type.h"

/* Frees the replaced TLS contexts that workers may still have used. Call it when no worker runs. */
void mk_server_certificate_free_replaced(struct mk_server *s);

#endif
