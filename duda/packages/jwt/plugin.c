/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [JWT] sections. */
#include <duda/config.h>
#include <duda/http.h>
#include <errno.h>

#include "common/package.h"
#include "jwt.h"

#define AT(member) MK_CONF_AT(struct jwt_settings, member)

static const char *const algorithms[] = {"HS256", "HS512", "RS256", "ES256", "EdDSA", NULL};

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Issuer",
     .type = MK_CONF_TEXT,
     AT(base.location),
     .max = 500,
     .help = "The claim `iss` of accepted tokens: the URL of the server that issues them."},
    {.name = "Audience",
     .type = MK_CONF_TEXT,
     AT(audience),
     .flags = MK_CONF_REQUIRED,
     .min = 1,
     .max = 500,
     .help = "The claim `aud` of accepted tokens, or one of its elements: the name of this service. Without "
             "this check, a token for another service would be valid here."},
    {.name = "JwksUrl",
     .type = MK_CONF_TEXT,
     AT(jwks_url),
     .max = 500,
     .help = "URL of the public keys, a JWK set."},
    {.name = "HttpClient",
     .type = MK_CONF_TEXT,
     AT(http_client),
     .max = 63,
     .help =
         "The Name of the [HTTP_CLIENT] section that fetches the keys. Its Server or AllowHosts must include "
         "the host of JwksUrl. Default: the section whose Name is this host."},
    {.name = "Key",
     .type = MK_CONF_CUSTOM,
     AT(key),
     .parse = duda_secret,
     .syntax = DUDA_SECRET_SYNTAX,
     .help = "In place of JwksUrl: a public key in PEM format, or the secret of HS256 or HS512."},
    {.name = "Algorithm",
     .type = MK_CONF_ENUM,
     AT(algorithm),
     .choices = algorithms,
     .default_value = "RS256",
     .help = "The algorithm of `Key`. The keys at JwksUrl have their own."},
    {.name = "Leeway",
     .type = MK_CONF_TIME,
     AT(leeway_ms),
     .default_value = "60s",
     .max = 600000,
     .help = "Tolerated difference between the clocks of the servers."},
    {.name = "RolesClaim",
     .type = MK_CONF_TEXT,
     AT(roles_claim),
     .default_value = "roles",
     .min = 1,
     .max = 200,
     .help = "The claim with the roles, such as `scope`, `permissions` or `realm_access.roles`."},
    {.name = "Realm",
     .type = MK_CONF_TEXT,
     AT(realm),
     .default_value = "restricted",
     .min = 1,
     .max = 100,
     .help = "The realm of challenges."},
};

static bool check_jwt_section(struct mk_config *config, const struct package_sections *before, void *settings)
{
    struct jwt_settings *s = settings;
    (void)before;
    if (!s->jwks_url.len == !s->key.len) {
        mk_config_error(config, s, "JwksUrl", "[JWT] needs either JwksUrl or Key");
        return false;
    }
    if (s->jwks_url.len && !mk_str_starts(s->jwks_url, MK_STR("https://")) &&
        !mk_str_starts(s->jwks_url, MK_STR("http://"))) {
        mk_config_error(config, s, "JwksUrl", "expected a URL that begins with https://");
        return false;
    }
    if (s->jwks_url.len)
        package_jwks_require_client(config, s, "JwksUrl", s->jwks_url, s->http_client);
    struct duda_jwt_key *key = s->key.len ? duda_jwt_key_new(s->algorithm, MK_STR_NULL, s->key) : NULL;
    if (s->key.len && !key)
        mk_config_error(config, s, "Key", "this is no valid key for %s, or it is too weak",
                        algorithms[s->algorithm]);
    duda_jwt_key_free(key);
    return s->jwks_url.len || key;
}

static int open_jwt(void *instance, struct mk_worker *w, const void *settings)
{
    struct jwt_section *section = instance;
    (void)w;
    section->settings = settings;
    if (section->settings->key.len)
        section->key = duda_jwt_key_new(section->settings->algorithm, MK_STR_NULL, section->settings->key);
    return section->settings->key.len && !section->key ? -ENOMEM : 0;
}

static void close_jwt(void *instance)
{
    struct jwt_section *section = instance;
    duda_jwt_key_free(section->key);
    package_jwks_close(&section->jwks);
}

PACKAGE_TYPE(jwt, "JWT", struct jwt_settings, struct jwt_section,
             "JSON Web Tokens that Duda services accept.", .location = "Issuer", .max = PACKAGE_SECTIONS_MAX,
             .check_section = check_jwt_section, .open = open_jwt, .close = close_jwt);

struct jwt_section *jwt_section_find(struct duda_ctx *d, const char *name)
{
    return package_find_instance(&kind, d, name);
}

PACKAGE_PLUGIN(jwt, "JSON Web Tokens for Duda services.", PACKAGE_HAS_TYPE,
               .needs = PACKAGE_NEEDS("duda-http", "duda-auth", "duda"));
