/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/ex_data.h"

#include <pthread.h>

#include "tls/loaded_keypair.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int ex_index = -1;

static void free_context_cb(void *parent, void *p, CRYPTO_EX_DATA *data, int index, long n, void *arg)
{
    struct mk_tls_context *c = p;
    (void)parent;
    (void)data;
    (void)index;
    (void)n;
    (void)arg;
    if (!c)
        return;
    mk_tls_loaded_keypair_free_all(c);
    while (c->n_staples)
        OPENSSL_free(c->staples[--c->n_staples].response);
    OPENSSL_free(c->challenges);
    OPENSSL_free(c->groups);
    OPENSSL_free(c);
}

static void create_ex_index(void)
{
    ex_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_context_cb);
}

bool mk_tls_ex_data_set_context(SSL_CTX *ctx, struct mk_tls_context *c)
{
    pthread_once(&once, create_ex_index);
    return ex_index >= 0 && SSL_CTX_set_ex_data(ctx, ex_index, c);
}

struct mk_tls_context *mk_tls_ex_data_get_context(const SSL_CTX *ctx)
{
    return ex_index < 0 ? NULL : SSL_CTX_get_ex_data(ctx, ex_index);
}
