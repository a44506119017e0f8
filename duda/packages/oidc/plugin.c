/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [OIDC] sections. */
#include <duda/config.h>
#include <duda/http.h>
#include <duda/store_backend.h>
#include <duda/task.h>
#include <errno.h>

#include "oidc.h"

#define AT(member) MK_CONF_AT(struct oidc_settings, member)

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Issuer",
     .type = MK_CONF_TEXT,
     AT(base.location),
     .max = 200,
     .help = "The provider's identifier of itself: `https://login.example.org`."},
    {.name = "Client",
     .type = MK_CONF_TEXT,
     AT(client),
     .flags = MK_CONF_REQUIRED,
     .min = 1,
     .max = 200,
     .help = "The client ID that the provider has issued."},
    {.name = "Secret",
     .type = MK_CONF_CUSTOM,
     AT(secret),
     .parse = duda_secret,
     .syntax = DUDA_SECRET_SYNTAX,
     .help = "The client secret. Without it, the service is a public client."},
    {.name = "RedirectUrl",
     .type = MK_CONF_TEXT,
     AT(redirect_url),
     .flags = MK_CONF_REQUIRED,
     .min = 1,
     .max = 300,
     .help = "The public URL of the callback route, as registered with the provider."},
    {.name = "PostLogoutUrl",
     .type = MK_CONF_TEXT,
     AT(logout_url),
     .max = 300,
     .help = "Where the provider redirects the browser after a logout. It must be registered, too."},
    {.name = "Scope",
     .type = MK_CONF_TEXT,
     AT(scope),
     .default_value = "openid profile",
     .min = 6,
     .max = 200,
     .help = "The scopes to request; one of them must be `openid`. Many providers send a refresh token only "
             "for `offline_access`."},
    {.name = "HttpClient",
     .type = MK_CONF_TEXT,
     AT(http_client),
     .max = 63,
     .help =
         "The Name of the [HTTP_CLIENT] section for requests to the provider. Its Server or AllowHosts must "
         "include the hosts of the Issuer and of the URLs that the provider publishes. Default: for each "
         "host, "
         "the section with its Name."},
    {.name = "TokenStore",
     .type = MK_CONF_TEXT,
     AT(token_store),
     .max = 63,
     .help =
         "Where the tokens of users are kept, encrypted, for duda_oidc_access_token(): the Name of a [KV] or "
         "[REDIS], or `memory`. Default: tokens are not kept."},
    {.name = "Leeway",
     .type = MK_CONF_TIME,
     AT(leeway_ms),
     .default_value = "60s",
     .max = 600000,
     .help = "Tolerated difference between the clocks of the servers."},
};

static bool has_openid(mk_str scope)
{
    mk_str word;
    while ((word = mk_str_word(&scope)).len)
        if (mk_str_eq(word, MK_STR("openid")))
            return true;
    return false;
}

static bool check_oidc_section(struct mk_config *config, const struct package_sections *before,
                               void *settings)
{
    const struct oidc_settings *s = settings;
    (void)before;
    if (!mk_str_starts(s->base.location, MK_STR("https://")) &&
        !mk_str_starts(s->base.location, MK_STR("http://")))
        mk_config_error(config, s, "Issuer", "expected a URL that begins with https://");
    else if (!has_openid(s->scope))
        mk_config_error(config, s, "Scope", "the scope `openid` is missing");
    else {
        package_jwks_require_client(config, s, "Issuer", s->base.location, s->http_client);
        return true;
    }
    return false;
}

static int open_oidc(void *instance, struct mk_worker *w, const void *settings)
{
    struct oidc_provider *p = instance;
    (void)w;
    p->settings = settings;
    return 0;
}

static void cancel_oidc(void *instance)
{
    struct oidc_provider *p = instance;
    while (p->refreshes)
        duda_task_cancel(p->refreshes->task);
}

static void close_oidc(void *instance)
{
    struct oidc_provider *p = instance;
    cancel_oidc(p);
    package_jwks_close(&p->jwks);
}

PACKAGE_TYPE(oidc, "OIDC", struct oidc_settings, struct oidc_provider,
             "An OpenID Connect provider at which users of Duda services log in.", .location = "Issuer",
             .max = PACKAGE_SECTIONS_MAX, .check_section = check_oidc_section, .open = open_oidc,
             .cancel = cancel_oidc, .close = close_oidc);

/* Called for each host, when the packages have declared their stores. */
static int check_token_stores(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    struct package_sections *all = data;
    (void)h;
    *host_data = data;
    for (size_t i = 0; i < all->n; i++) {
        struct oidc_settings *s = all->v[i];
        if (s->token_store.len && !s->is_checked && !mk_str_eq(s->token_store, MK_STR("memory")))
            duda_store_require(config, s, "TokenStore", s->token_store);
        s->is_checked = true;
    }
    return 0;
}

static const char *check_login(const void *data)
{
    return !data || duda_data_has_type(data, DUDA_DATA_OIDC_LOGIN)
               ? NULL
               : "the `.data` of a route for OpenID Connect must be one that DUDA_OIDC_LOGIN() initializes";
}

static int load_oidc(struct mk_config *config, void **data)
{
    oidc_provider_set_kind(&kind);
    duda_data_declare(config, duda_oidc_log_in, check_login);
    duda_data_declare(config, duda_oidc_callback, check_login);
    duda_data_declare(config, duda_oidc_log_out, check_login);
    duda_data_declare(config, duda_oidc_back_channel_log_out, check_login);
    return load_sections(config, data);
}

PACKAGE_PLUGIN(oidc, "OpenID Connect for Duda services.", .sections = sections, .load = load_oidc,
               .host = check_token_stores, .worker_start = package_worker_start,
               .worker_cancel = package_worker_cancel, .worker_stop = package_worker_stop,
               .needs = PACKAGE_NEEDS("duda-http", "duda-store", "duda"));
