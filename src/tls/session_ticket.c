/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/session_ticket.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include "tls/ex_data.h"

enum { FAILED = -1, NOT_OURS = 0, FINE = 1, RENEW = 2 };

enum { IV = 16 };

typedef struct mk_tls_ticket_key ticket_key;

static const ticket_key *ticket_key_at(const struct mk_tls_tickets *all, uint32_t n)
{
    return &all->keys[n % MK_TLS_TICKET_KEYS];
}

/* Is it a key, and not zeroed memory? */
static bool is_valid_key(const ticket_key *k)
{
    uint8_t any = 0;
    for (size_t i = 0; i < sizeof k->cipher; i++)
        any |= k->cipher[i];
    return any != 0;
}

static bool key_has_name(const ticket_key *k, const unsigned char *name)
{
    return is_valid_key(k) && memcmp(k->name, name, sizeof k->name) == 0;
}

static bool init_mac(EVP_MAC_CTX *mac, const ticket_key *k)
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                 OSSL_PARAM_construct_end()};
    return EVP_MAC_init(mac, k->mac, sizeof k->mac, params) == 1;
}

static int init_encryption(const ticket_key *k, unsigned char *name, unsigned char *iv,
                           EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    if (!is_valid_key(k))
        return NOT_OURS; /* no ticket */
    memcpy(name, k->name, sizeof k->name);
    if (RAND_bytes(iv, IV) != 1 || !EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, k->cipher, iv) ||
        !init_mac(mac, k))
        return FAILED;
    return FINE;
}

static int init_decryption(const ticket_key *k, const unsigned char *iv, EVP_CIPHER_CTX *cipher,
                           EVP_MAC_CTX *mac)
{
    if (!EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, k->cipher, iv) || !init_mac(mac, k))
        return FAILED;
    return FINE;
}

int mk_tls_session_ticket_key_cb(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                                 EVP_MAC_CTX *mac, int is_new)
{
    const struct mk_tls_context *c = mk_tls_ex_data_get_context(SSL_get_SSL_CTX(ssl));
    if (!c || !c->tickets)
        return NOT_OURS;
    uint32_t newest = __atomic_load_n(&c->tickets->newest, __ATOMIC_ACQUIRE);
    const ticket_key *now = ticket_key_at(c->tickets, newest),
                     *before = ticket_key_at(c->tickets, newest - 1);
    if (is_new)
        return init_encryption(now, name, iv, cipher, mac);
    bool is_old = !key_has_name(now, name);
    if (is_old && !key_has_name(before, name))
        return NOT_OURS;
    int r = init_decryption(is_old ? before : now, iv, cipher, mac);
    bool renews = is_old || SSL_version(ssl) >= TLS1_3_VERSION; /* a TLS 1.3 ticket is used only once */
    return r == FINE && renews ? RENEW : r;
}

/* Has the client's certificate expired? Tickets are renewed on each connection without verifying the
 * certificate again. The expiry is therefore checked here: otherwise a certificate that was valid once would
 * admit the client forever. */
static bool certificate_has_expired(const X509 *client)
{
    return client && X509_cmp_current_time(X509_get0_notAfter(client)) <= 0;
}

SSL_TICKET_RETURN mk_tls_session_ticket_decrypt_cb(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                                   size_t len, SSL_TICKET_STATUS status, void *arg)
{
    (void)ssl, (void)name, (void)len, (void)arg;
    bool is_open = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
    if (!is_open || certificate_has_expired(SSL_SESSION_get0_peer(session)))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}
