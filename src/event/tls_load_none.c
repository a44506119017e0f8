/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces tls_load.c in builds without TLS; link-time optimization then removes code used only by a TLS
 * module. */
#include "event/tls.h"

const struct mk_tls_module *mk_tls_load(const char **error)
{
    if (error)
        *error = "Monkey was built without OpenSSL";
    return NULL;
}
