/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/session.h"

#include <openssl/x509.h>
#include <time.h>

#include "base/mem.h"
#include "tls/bio.h"

/* The server is not verified again on resumption: a session is valid only for its original server, and until
 * one of the certificates that were verified for it expires. */
struct mk_tls_session {
    SSL_SESSION *ssl;
    uint64_t client;
    int64_t until; /* seconds since 1970 */
    char name[];
};

/* The earliest expiry of the verified certificates. */
static int64_t chain_expiry(const SSL *ssl)
{
    int64_t until = INT64_MAX;
    struct tm tm;
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    if (SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE)
        return until;
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t end = 0;
        if (ASN1_TIME_to_tm(X509_get0_notAfter(sk_X509_value(chain, i)), &tm))
            end = (int64_t)timegm(&tm);
        until = end < until ? end : until;
    }
    return until;
}

static void store_session(struct mk_tls *t, SSL_SESSION *ssl)
{
    struct mk_tls_client_conn *call = t->call;
    size_t len = strlen(call->name) + 1;
    struct mk_tls_session *s = mk_mem_alloc(sizeof *s + len);
    if (!SSL_session_reused(t->ssl))
        call->until = chain_expiry(t->ssl);
    if (!s) { /* the next handshake will be a full one */
        SSL_SESSION_free(ssl);
        return;
    }
    *s = (struct mk_tls_session){.ssl = ssl, .client = call->client, .until = call->until};
    memcpy(s->name, call->name, len);
    mk_tls_session_free(*call->session);
    *call->session = s;
}

int mk_tls_session_new_cb(SSL *ssl, SSL_SESSION *session)
{
    struct mk_tls *t = mk_tls_bio_stream(ssl);
    if (SSL_version(ssl) < TLS1_3_VERSION)
        return 0; /* mk_tls_session_on_handshake_done() stores it: OpenSSL does not call this callback when
                   * the ticket of a resumed session is renewed */
    store_session(t, session);
    return 1;
}

void mk_tls_session_on_handshake_done(struct mk_tls *t)
{
    SSL_SESSION *session = SSL_get0_session(t->ssl);
    if (SSL_version(t->ssl) < TLS1_3_VERSION && SSL_SESSION_is_resumable(session) &&
        SSL_SESSION_up_ref(session))
        store_session(t, session);
}

/* Copies the session, because OpenSSL lets only one connection resume a TLS 1.3 session. That prevents
 * eavesdroppers from recognizing a client, but would cost a full handshake for each additional connection
 * that begins before the first one has its ticket. */
void mk_tls_session_resume(struct mk_tls *t)
{
    const struct mk_tls_session *s = *t->call->session;
    if (!s || s->client != t->call->client || strcmp(s->name, t->call->name) != 0 ||
        s->until <= (int64_t)time(NULL))
        return;
    SSL_SESSION *copy = SSL_SESSION_dup(s->ssl);
    t->call->until = s->until;
    t->call->resumes = copy && SSL_set_session(t->ssl, copy);
    SSL_SESSION_free(copy);
}

void mk_tls_session_discard(struct mk_tls *t)
{
    if (!t->call->resumes)
        return;
    mk_tls_session_free(*t->call->session);
    *t->call->session = NULL;
}

void mk_tls_session_free(struct mk_tls_session *s)
{
    if (!s)
        return;
    SSL_SESSION_free(s->ssl);
    mk_mem_free(s);
}
