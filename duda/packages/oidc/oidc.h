/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the package oidc. */
#ifndef OIDC_OIDC_H
#define OIDC_OIDC_H

#include <duda/oidc.h>

#include "common/package.h"
#include "common/package_jwks.h"

enum { OIDC_URL_MAX = 500 };

struct oidc_settings {
    struct package_settings base; /* the location is the issuer */
    mk_str client, secret, redirect_url, logout_url, scope;
};

/* The members of the discovery document that are used. */
struct oidc_endpoints {
    mk_str issuer, authorization, token, keys, end;
};

/* A provider in one worker. */
struct oidc_provider {
    const struct oidc_settings *settings;
    char text[4][OIDC_URL_MAX + 1]; /* memory for the URLs in `endpoints` */
    struct oidc_endpoints endpoints;
    int64_t endpoints_at;
    struct package_jwks jwks;
};
struct oidc_provider *oidc_provider_find(struct duda_ctx *d, const char *name);

/* Logs the reason, and responds with problem details. */
duda_verdict oidc_refuse(struct duda_ctx *d, unsigned status, const char *message);
/* Fetches the endpoints and keys unless current ones are cached. Returns 0, or the result for the handler to
 * return. */
int oidc_discover(struct duda_ctx *d, struct oidc_provider *p);
/* Exchanges the authorization code for an ID token. Returns 0, or the result for the handler to return. */
int oidc_exchange_code(struct duda_ctx *d, struct oidc_provider *p, mk_str code, mk_str verifier,
                       mk_str *id_token);
/* Appends `&name=value`. */
void oidc_add_field(struct mk_buf *out, const char *name, mk_str value);

#endif
