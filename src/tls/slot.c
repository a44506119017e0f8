/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/slot.h"

#include <pthread.h>

#include "tls/source.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int slot = -1;

static void on_free(void *parent, void *p, CRYPTO_EX_DATA *data, int index, long n, void *arg)
{
    struct mk_tls_context *c = p;
    (void)parent;
    (void)data;
    (void)index;
    (void)n;
    (void)arg;
    if (!c)
        return;
    mk_tls_source_free(c);
    while (c->n_staples)
        OPENSSL_free(c->staples[--c->n_staples].answer);
    OPENSSL_free(c->challenges);
    OPENSSL_free(c->groups);
    OPENSSL_free(c);
}

static void make(void)
{
    slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, on_free);
}

bool mk_tls_slot_set(SSL_CTX *ctx, struct mk_tls_context *c)
{
    pthread_once(&once, make);
    return slot >= 0 && SSL_CTX_set_ex_data(ctx, slot, c);
}

struct mk_tls_context *mk_tls_slot_of(const SSL_CTX *ctx)
{
    return slot < 0 ? NULL : SSL_CTX_get_ex_data(ctx, slot);
}
