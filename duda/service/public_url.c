/* SPDX-License-Identifier: Apache-2.0 */
#include "service/public_url.h"

#include <string.h>

static bool has_name(const mk_str *names, size_t n, mk_str name)
{
    size_t i = 0;
    while (i < n && !mk_str_eq(names[i], name))
        i++;
    return i < n;
}

static bool names_service(const struct duda_public_url *u, mk_str service)
{
    return has_name(u->services, u->n_services, service);
}

/* Returns the value that names the service; an absent service: the value for all services. */
static const struct duda_public_url *find_public_url(const struct duda_public_urls *urls, mk_str service)
{
    for (size_t i = 0; i < urls->n; i++)
        if (service.p ? names_service(&urls->at[i], service) : !urls->at[i].n_services)
            return &urls->at[i];
    return NULL;
}

mk_str duda_public_urls_find(const struct duda_public_urls *urls, mk_str service)
{
    const struct duda_public_url *u = find_public_url(urls, service);
    u = u ? u : find_public_url(urls, MK_STR_NULL);
    return u ? u->url : MK_STR_NULL;
}

/* ---- Parsing ---- */

static mk_str skip_scheme(mk_str url)
{
    mk_str https = MK_STR("https://"), http = MK_STR("http://");
    return mk_str_starts(url, https)  ? mk_str_skip(url, https.len)
           : mk_str_starts(url, http) ? mk_str_skip(url, http.len)
                                      : MK_STR_NULL;
}

/* Is the URL an origin, or an origin and a path? */
static bool is_public_url(mk_str url)
{
    mk_str rest = skip_scheme(url);
    for (size_t i = 0; i < rest.len; i++)
        if (rest.p[i] <= ' ' || rest.p[i] > '~' || strchr("\"<>\\^`{|}?#@", rest.p[i]))
            return false;
    return rest.len && rest.p[0] != '/' && rest.p[0] != ':';
}

static bool parse_public_url(const struct mk_conf_ctx *conf_ctx, mk_str word, struct duda_public_url *u)
{
    if (!is_public_url(word)) {
        mk_conf_ctx_error(conf_ctx, word, "`%.*s` is not a URL of a site, such as `https://www.example.org`",
                          MK_STR_ARG(mk_str_first(word, 80)));
        return false;
    }
    while (word.p[word.len - 1] == '/')
        word.len--;
    u->url = word;
    return true;
}

static bool add_public_url(const struct mk_conf_ctx *conf_ctx, struct duda_public_urls *known,
                           const struct duda_public_url *u)
{
    if (!u->url.p) {
        mk_conf_ctx_error(conf_ctx, mk_conf_ctx_value(conf_ctx), "expected a URL");
        return false;
    }
    if (!u->n_services && find_public_url(known, MK_STR_NULL)) {
        mk_conf_ctx_error(conf_ctx, mk_conf_ctx_value(conf_ctx),
                          "another PublicUrl is already for all services");
        return false;
    }
    return mk_conf_ctx_append(conf_ctx, &known->at, &known->n, u, sizeof *u);
}

bool duda_public_urls_parse(const struct mk_conf_ctx *conf_ctx, mk_str value, void *urls)
{
    struct duda_public_urls *known = urls;
    struct duda_public_url u = {.url = MK_STR_NULL};
    mk_str word;
    while (mk_conf_ctx_word(conf_ctx, &value, &word)) {
        if (!word.p)
            return add_public_url(conf_ctx, known, &u);
        if (!u.url.p) {
            if (!parse_public_url(conf_ctx, word, &u))
                return false;
            continue;
        }
        if (find_public_url(known, word) || names_service(&u, word)) {
            mk_conf_ctx_error(conf_ctx, word, "a service can have only one PublicUrl");
            return false;
        }
        if (!mk_conf_ctx_append(conf_ctx, &u.services, &u.n_services, &word, sizeof word))
            return false;
    }
    return false;
}

bool duda_public_urls_format(const void *urls, size_t i, struct mk_buf *out)
{
    const struct duda_public_urls *known = urls;
    if (i >= known->n)
        return false;
    mk_buf_add(out, known->at[i].url);
    for (size_t k = 0; k < known->at[i].n_services; k++) {
        mk_buf_add_char(out, ' ');
        mk_buf_add(out, known->at[i].services[k]);
    }
    return true;
}

/* ---- After all services are known ---- */

void duda_public_urls_check(struct mk_config *config, const void *section,
                            const struct duda_public_urls *urls, const mk_str *services, size_t n)
{
    for (size_t i = 0; i < urls->n; i++)
        for (size_t k = 0; k < urls->at[i].n_services; k++)
            /* Only a warning: the service may run in another group of processes. */
            if (!has_name(services, n, urls->at[i].services[k])) {
                mk_config_warn(config, section, "PublicUrl", "no service `%.*s` is loaded",
                               MK_STR_ARG(urls->at[i].services[k]));
                mk_config_suggest(config, urls->at[i].services[k], services, n);
            }
}
