/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/loaded_keypair.h"

#include <string.h>

const struct mk_tls_loaded_keypair *mk_tls_loaded_keypair_find(const struct mk_tls_context *c,
                                                               const char *file)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (strcmp(c->sources[i].file, file) == 0)
            return &c->sources[i];
    return NULL;
}

static int key_type(X509 *leaf)
{
    return EVP_PKEY_get_base_id(X509_get0_pubkey(leaf));
}

bool mk_tls_loaded_keypair_has_key_type(const struct mk_tls_context *c, X509 *leaf)
{
    for (size_t i = 0; i < c->n_sources; i++)
        if (key_type(c->sources[i].leaf) == key_type(leaf))
            return true;
    return false;
}

void mk_tls_loaded_keypair_free(struct mk_tls_loaded_keypair *s)
{
    OPENSSL_free(s->file);
    X509_free(s->leaf);
    sk_X509_pop_free(s->chain, X509_free);
    EVP_PKEY_free(s->key);
    *s = (struct mk_tls_loaded_keypair){0};
}

mk_err mk_tls_loaded_keypair_add(struct mk_tls_context *c, const char *file, X509 *leaf,
                                 STACK_OF(X509) * chain, EVP_PKEY *key)
{
    struct mk_tls_loaded_keypair *s = &c->sources[c->n_sources];
    *s = (struct mk_tls_loaded_keypair){.file = OPENSSL_strdup(file), .chain = X509_chain_up_ref(chain)};
    s->leaf = X509_up_ref(leaf) ? leaf : NULL;
    s->key = EVP_PKEY_up_ref(key) ? key : NULL;
    if (s->file && s->chain && s->leaf && s->key) {
        c->n_sources++;
        return 0;
    }
    mk_tls_loaded_keypair_free(s);
    return -ENOMEM;
}

void mk_tls_loaded_keypair_free_all(struct mk_tls_context *c)
{
    while (c->n_sources)
        mk_tls_loaded_keypair_free(&c->sources[--c->n_sources]);
}
