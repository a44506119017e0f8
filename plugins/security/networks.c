/* SPDX-License-Identifier: Apache-2.0 */
#include "networks.h"

static bool append_network(const struct mk_conf_ctx *ctx, struct security_networks *known, mk_str word)
{
    struct mk_network network;
    size_t n = known->n;
    if (!mk_network_parse(word, &network)) {
        mk_conf_ctx_error(ctx, word,
                          "`%.*s` is not an address or a network: expected 192.0.2.7, 192.0.2.0/24 or "
                          "2001:db8::/32 (without bits after its prefix), unix: or all",
                          MK_STR_ARG(mk_str_first(word, 80)));
        return false;
    }
    if (!mk_conf_ctx_append(ctx, &known->at, &n, &network, sizeof network) ||
        !mk_conf_ctx_append(ctx, &known->words, &known->n, &word, sizeof word))
        return false;
    if (network.bits == 0 && !network.is_unix)
        mk_conf_ctx_warn(ctx, word, "`%.*s` trusts every client: any of them can claim any address",
                         MK_STR_ARG(word));
    return true;
}

bool security_networks_parse(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct security_networks *known = field;
    mk_str word;
    known->is_set = true;
    if (mk_str_eq_nocase(value, MK_STR("off")))
        return true;
    while (mk_conf_ctx_word(ctx, &value, &word)) {
        if (!word.p)
            return true;
        if (!append_network(ctx, known, word))
            return false;
    }
    return false;
}

bool security_networks_show(const void *field, size_t i, struct mk_buf *out)
{
    const struct security_networks *known = field;
    if (known->n == 0 && known->is_set && i == 0)
        mk_buf_add(out, MK_STR("off"));
    else if (i < known->n)
        mk_buf_add(out, known->words[i]);
    else
        return false;
    return true;
}
