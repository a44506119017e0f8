/* SPDX-License-Identifier: Apache-2.0 */
#include "service/share.h"

#include <duda/scope.h>

static bool list_contains(const mk_str *list, size_t n, mk_str word)
{
    size_t i = 0;
    while (i < n && !mk_str_eq(list[i], word))
        i++;
    return i < n;
}

const struct duda_share *duda_shares_find(const struct duda_shares *shares, mk_str service)
{
    for (size_t i = 0; i < shares->n; i++)
        if (list_contains(shares->at[i].services, shares->at[i].n_services, service))
            return &shares->at[i];
    return NULL;
}

/* ---- Parsing ---- */

static bool report_share_error(const struct mk_conf_ctx *conf_ctx, mk_str part, const char *error)
{
    mk_conf_ctx_error(conf_ctx, part, "%s", error);
    mk_conf_ctx_hint(conf_ctx,
                     "write `Share NAME SERVICE... [on HOST...]`: `Share shop storefront checkout on *`");
    return false;
}

static bool parse_share_name(const struct mk_conf_ctx *conf_ctx, const struct duda_shares *known, mk_str word,
                             struct duda_share *share)
{
    if (!duda_scope_is_valid_name(word))
        return report_share_error(conf_ctx, word, "the name must have 1 to 48 letters, digits, `-` and `_`");
    for (size_t i = 0; i < known->n; i++)
        if (mk_str_eq(known->at[i].name, word))
            return report_share_error(conf_ctx, word, "another Share already has this name");
    share->name = word;
    return true;
}

static bool parse_share_service(const struct mk_conf_ctx *conf_ctx, const struct duda_shares *known,
                                mk_str word, struct duda_share *share)
{
    if (duda_shares_find(known, word) || list_contains(share->services, share->n_services, word))
        return report_share_error(conf_ctx, word, "a service can have only one Share");
    return mk_conf_ctx_append(conf_ctx, &share->services, &share->n_services, &word, sizeof word);
}

static bool parse_share_host(const struct mk_conf_ctx *conf_ctx, mk_str word, struct duda_share *share)
{
    share->has_all_hosts |= mk_str_eq(word, MK_STR("*"));
    return mk_conf_ctx_append(conf_ctx, &share->hosts, &share->n_hosts, &word, sizeof word);
}

bool duda_shares_parse(const struct mk_conf_ctx *conf_ctx, mk_str value, void *shares)
{
    struct duda_shares *known = shares;
    struct duda_share share = {0};
    bool is_on = false;
    mk_str word;
    while (mk_conf_ctx_word(conf_ctx, &value, &word)) {
        bool good = true;
        if (!word.p && (!share.n_services || (is_on && !share.n_hosts)))
            return report_share_error(conf_ctx, mk_conf_ctx_value(conf_ctx),
                                      is_on ? "expected a host after `on`"
                                            : "expected a service after the name");
        if (!word.p)
            return mk_conf_ctx_append(conf_ctx, &known->at, &known->n, &share, sizeof share);
        if (!share.name.p)
            good = parse_share_name(conf_ctx, known, word, &share);
        else if (share.n_services && !is_on && mk_str_eq(word, MK_STR("on")))
            is_on = true;
        else
            good = is_on ? parse_share_host(conf_ctx, word, &share)
                         : parse_share_service(conf_ctx, known, word, &share);
        if (!good)
            return false;
    }
    return false;
}

static void append_words(struct mk_buf *out, const mk_str *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mk_buf_add_char(out, ' ');
        mk_buf_add(out, words[i]);
    }
}

bool duda_shares_format(const void *shares, size_t i, struct mk_buf *out)
{
    const struct duda_shares *known = shares;
    if (i >= known->n)
        return false;
    const struct duda_share *s = &known->at[i];
    mk_buf_add(out, s->name);
    append_words(out, s->services, s->n_services);
    if (s->n_hosts)
        mk_buf_add(out, MK_STR(" on"));
    append_words(out, s->hosts, s->n_hosts);
    return true;
}

/* ---- After all services are known ---- */

void duda_shares_check(struct mk_config *config, const void *section, const struct duda_shares *shares,
                       const mk_str *services, size_t n)
{
    for (size_t i = 0; i < shares->n; i++) {
        const struct duda_share *s = &shares->at[i];
        for (size_t k = 0; k < s->n_services; k++)
            /* Only a warning: the service may run in another group of processes. */
            if (!list_contains(services, n, s->services[k])) {
                mk_config_warn(config, section, "Share", "no service `%.*s` is loaded",
                               MK_STR_ARG(s->services[k]));
                mk_config_suggest(config, s->services[k], services, n);
            }
        if (list_contains(services, n, s->name) && !list_contains(s->services, s->n_services, s->name))
            mk_config_error(config, section, "Share",
                            "`%.*s` is the name of a service that is not in this Share", MK_STR_ARG(s->name));
    }
}
