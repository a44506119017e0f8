/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "event/tls.h"
#include "os/module.h"

/* Defined in programs with TLS built in. */
extern const struct mk_tls_module mk_tls_module __attribute__((weak));

static const struct mk_tls_module *module;
static char load_error[MK_MODULE_ERROR_MAX];

static void load_tls_module(void)
{
    module = mk_module_load(&(struct mk_module){.name = "tls",
                                                .symbol = "mk_tls_module",
                                                .needs = "OpenSSL",
                                                .abi = MK_TLS_ABI,
                                                .built_in = &mk_tls_module},
                            load_error);
    if (module)
        module->use_send_file(mk_stream_plain_send_file);
}

const struct mk_tls_module *mk_tls_load(const char **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_tls_module);
    if (error)
        *error = module ? NULL : load_error;
    return module;
}
