/* SPDX-License-Identifier: Apache-2.0 */
#include "web/https_policy.h"

#include "web/redirect.h"

enum { HTTPS_PORT = 443 };

static enum mk_verdict fail_with_status(struct mk_response *response, unsigned status)
{
    response->status = status;
    return MK_ERROR;
}

static bool allows_plain_http(const struct mk_request *r)
{
    return !r->site->https_port && !r->site->client_required;
}

MK_COLD bool mk_https_policy_is_acme_request(const struct mk_request *r)
{
    bool reads = r->target->method == MK_METHOD_GET || r->target->method == MK_METHOD_HEAD;
    return reads && !mk_request_is_secure(r) && !allows_plain_http(r) && mk_acme_token(r->target->path).p;
}

/* Returns the requested name, or else the first literal name of the host; absent: there is none. */
static mk_str redirect_host_name(const struct mk_request *r)
{
    mk_str name = r->host.p ? r->host : mk_vhost_first_plain_name(r->site);
    return name.len ? name : (mk_str){NULL, 0};
}

/* Appends the target as received, before any rewrite. */
static mk_str append_received_target(const struct mk_request *r, mk_str url)
{
    const struct mk_target *t = &r->received.target;
    return mk_arena_printf(r->arena, "%.*s%.*s%s%.*s", MK_STR_ARG(url), MK_STR_ARG(t->path),
                           t->query.p ? "?" : "", MK_STR_ARG(t->query));
}

static enum mk_verdict redirect_to_https(struct mk_request *r, struct mk_response *response)
{
    struct mk_redirect *to = mk_arena_alloc(r->arena, sizeof *to);
    mk_str name = redirect_host_name(r);
    if (!name.p)
        return fail_with_status(response, 403);
    mk_str url =
        r->site->https_port == HTTPS_PORT
            ? mk_arena_printf(r->arena, "https://%.*s", MK_STR_ARG(name))
            : mk_arena_printf(r->arena, "https://%.*s:%u", MK_STR_ARG(name), (unsigned)r->site->https_port);
    if (!to || !url.p)
        return fail_with_status(response, 503);
    url = append_received_target(r, url);
    if (!url.p)
        return fail_with_status(response, 503);
    *to = (struct mk_redirect){.status = 308, .url = url};
    mk_request_explain(r, "tls", "redirects plain HTTP to %.*s", MK_STR_ARG(url));
    return mk_redirect.handle(r, response, to);
}

/* If the host requires client certificates, plain requests are rejected, because even a proxy that terminates
 * TLS for its clients cannot present their certificates. */
static enum mk_verdict check_plain_request(struct mk_request *r, struct mk_response *response)
{
    if (allows_plain_http(r) || !mk_str_starts(r->target->path, MK_STR("/")))
        return MK_NEXT;
    if (r->site->https_port && !mk_request_is_secure(r))
        return redirect_to_https(r, response);
    if (!r->site->client_required)
        return MK_NEXT;
    mk_request_explain(r, "tls", "this host requires client certificates: plain HTTP is rejected");
    return fail_with_status(response, 403);
}

/* The client certificate was requested and verified for the host named in the TLS handshake, so the requested
 * host must have the same rules (RFC 9110, section 7.4). */
static enum mk_verdict check_tls_request(struct mk_request *r, struct mk_response *response)
{
    struct mk_tls_conn_info facts = {0};
    if (!r->hosts->client_rules || !r->ops || !r->ops->tls)
        return MK_NEXT;
    r->ops->tls(r->ops_ctx, &facts);
    const struct mk_vhost *named = mk_vhosts_find(r->hosts, facts.server_name);
    if (named->client_rules_id != r->site->client_rules_id)
        return fail_with_status(response, 421);
    bool is_unknown = r->site->client_required && !facts.client_fingerprint.p;
    return is_unknown ? fail_with_status(response, 403) : MK_NEXT;
}

enum mk_verdict mk_https_policy_check(struct mk_request *r, struct mk_response *response)
{
    if (!r->encrypted)
        return check_plain_request(r, response);
    bool leads_away = r->site->https_port && !mk_request_is_secure(r);
    return leads_away ? redirect_to_https(r, response) : check_tls_request(r, response);
}

bool mk_https_policy_add_hsts(const struct mk_request *r, struct mk_response *response)
{
    return !mk_request_is_secure(r) ||
           mk_response_add_default(response, MK_STR("Strict-Transport-Security"), r->site->hsts) == 0;
}
