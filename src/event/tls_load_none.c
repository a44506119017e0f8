/* SPDX-License-Identifier: Apache-2.0 */
/* In a build without TLS; link-time optimisation then drops what only a TLS module would need. */
#include "event/tls.h"

const struct mk_tls_module *mk_tls_load(const char **error)
{
    if (error)
        *error = "Monkey was built without OpenSSL";
    return NULL;
}
