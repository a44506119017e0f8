/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/connect.h"

#include <arpa/inet.h>
#include <openssl/err.h>

#include "base/mem.h"
#include "tls/client.h"
#include "tls/session.h"
#include "tls/stream.h"

static const unsigned char h2_only[] = {2, 'h', '2'};

/* Removes the trailing dot of a fully qualified name, which certificates and SNI omit. */
static struct mk_tls_client_conn *new_client_conn(const char *name)
{
    size_t len = strlen(name);
    len -= len > 1 && name[len - 1] == '.';
    struct mk_tls_client_conn *call = mk_mem_zalloc(1, sizeof *call + len + 1);
    if (call)
        memcpy(call->name, name, len);
    return call;
}

/* Sets the name that is verified and, unless it is an address, sent as SNI. False: the name is invalid, or
 * memory ran out. */
static bool set_server_name(SSL *ssl, char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip(rules, address, sizeof(struct in_addr));
    if (inet_pton(AF_INET6, name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip(rules, address, sizeof(struct in6_addr));
    return SSL_set_tlsext_host_name(ssl, name) && X509_VERIFY_PARAM_set1_host(rules, name, 0);
}

mk_err mk_tls_connect(struct mk_stream *s, int fd, struct mk_tls_client *client, const char *name,
                      struct mk_tls_session **session, bool http2)
{
    struct mk_tls *t = mk_tls_stream_new(fd, client->ctx);
    if (!t)
        return -ENOMEM;
    t->call = new_client_conn(name);
    bool is_set = t->call && set_server_name(t->ssl, t->call->name) &&
                  (!http2 || SSL_set_alpn_protos(t->ssl, h2_only, sizeof h2_only) == 0);
    if (!is_set) {
        mk_tls_stream_free(t);
        return -ENOMEM;
    }
    t->call->session = session;
    t->call->client = client->number;
    SSL_set_connect_state(t->ssl);
    mk_tls_session_resume(t);
    mk_tls_stream_attach(s, t);
    return 0;
}
