/* SPDX-License-Identifier: Apache-2.0 */
/* Function table of the loadable object. */
#include <openssl/crypto.h>

#include "tls/client.h"
#include "tls/conn_info.h"
#include "tls/connect.h"
#include "tls/context.h"
#include "tls/inventory.h"
#include "tls/inventory_gauges.h"
#include "tls/local_ca.h"
#include "tls/session.h"
#include "tls/stream.h"

extern const struct mk_tls_module mk_tls_module;

__attribute__((visibility("default"))) const struct mk_tls_module mk_tls_module = {
    .abi = MK_TLS_ABI,
    .vendor = OPENSSL_VERSION_TEXT,
    .context_new = mk_tls_context_new,
    .context_free = mk_tls_context_free,
    .context_has = mk_tls_context_has_certificate,
    .context_begins = mk_tls_context_valid_from,
    .context_expires = mk_tls_context_valid_until,
    .open = mk_tls_stream_open,
    .handshake = mk_tls_stream_handshake,
    .facts = mk_tls_conn_info_get,
    .authority = &mk_tls_local_ca_ops_openssl,
    .use_send_file = mk_tls_stream_set_send_file,
    .client_new = mk_tls_client_new,
    .client_free = mk_tls_client_free,
    .connect = mk_tls_connect,
    .session_free = mk_tls_session_free,
    .inventory = mk_tls_inventory_write,
    .inventory_table = mk_tls_inventory_gauges_register,
};
