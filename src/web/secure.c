/* SPDX-License-Identifier: Apache-2.0 */
#include "web/secure.h"

#include "web/redirect.h"

enum { HTTPS_PORT = 443 };

static enum mk_verdict refuse(struct mk_response *response, unsigned status)
{
    response->status = status;
    return MK_REFUSE;
}

/* An authority that is asked whether a name is ours asks in plain text (RFC 8555, section 8.3). */
static bool is_challenge(const struct mk_request *r)
{
    return mk_str_starts(r->path, MK_STR("/.well-known/acme-challenge/"));
}

/* The one that was asked for, or the first that we have; absent: none. */
static mk_str name_of(const struct mk_request *r)
{
    mk_str name = r->host.p ? r->host : mk_host_name(r->site);
    return name.len && !mk_str_starts(name, MK_STR("*")) ? name : (mk_str){NULL, 0};
}

static enum mk_verdict redirect(struct mk_request *r, struct mk_response *response)
{
    struct mk_redirect *to = mk_arena_alloc(r->arena, sizeof *to);
    mk_str name = name_of(r);
    if (!name.p)
        return refuse(response, 403);
    mk_str url =
        r->site->https_port == HTTPS_PORT
            ? mk_arena_printf(r->arena, "https://%.*s", MK_STR_ARG(name))
            : mk_arena_printf(r->arena, "https://%.*s:%u", MK_STR_ARG(name), (unsigned)r->site->https_port);
    if (!to || !url.p)
        return refuse(response, 503);
    *to = (struct mk_redirect){.status = 308, .url = url};
    mk_request_explain(r, "tls", "plain requests are sent to %.*s", MK_STR_ARG(url));
    return mk_redirect.handle(r, response, to);
}

static enum mk_verdict enter_plain(struct mk_request *r, struct mk_response *response)
{
    if (is_challenge(r) || !mk_str_starts(r->path, MK_STR("/")))
        return MK_NEXT;
    if (r->site->https_port)
        return redirect(r, response);
    if (!r->site->client_required)
        return MK_NEXT;
    mk_request_explain(r, "tls", "this host requires certificates of clients: plain requests are refused");
    return refuse(response, 403);
}

/* The certificate of the client was asked for, and looked at, for the host that was named when the connection
 * began (RFC 9110, section 7.4). */
static enum mk_verdict enter_encrypted(struct mk_request *r, struct mk_response *response)
{
    struct mk_tls_facts facts = {0};
    if (!r->web->hosts->client_rules || !r->ops || !r->ops->tls)
        return MK_NEXT;
    r->ops->tls(r->ops_ctx, &facts);
    const struct mk_host *named = mk_hosts_find(r->web->hosts, facts.server_name);
    if (named->client_rules != r->site->client_rules)
        return refuse(response, 421);
    bool is_unknown = r->site->client_required && !facts.client_fingerprint.p;
    return is_unknown ? refuse(response, 403) : MK_NEXT;
}

enum mk_verdict mk_secure_enter(struct mk_request *r, struct mk_response *response)
{
    return r->encrypted ? enter_encrypted(r, response) : enter_plain(r, response);
}

bool mk_secure_mark(const struct mk_request *r, struct mk_response *response)
{
    mk_str name = MK_STR("Strict-Transport-Security");
    if (!r->encrypted || mk_response_field(response, name).p)
        return true;
    return mk_response_add_ready(response, name, r->site->hsts);
}
