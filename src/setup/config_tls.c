/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of monkey/tls.h that plugins call while a configuration is loaded. */
#include <monkey/tls.h>

#include "base/assert.h"
#include "setup/config.h"
#include "setup/config_generation.h"

bool mk_config_has_tls(const struct mk_config *c)
{
    return mk_config_generation_has_tls(c->generation);
}

bool mk_config_has_certificate(const struct mk_config *c)
{
    MK_ASSERT(c->site);
    const struct mk_certificates *own = &c->site->settings.site.tls.certificates;
    return own->n && own->at != c->generation->server.site.tls.certificates.at;
}

void mk_config_add_certificate(struct mk_config *c, const char *certificate, const char *key)
{
    MK_ASSERT(c->site);
    struct mk_plugin_certificate *b = mk_config_alloc(c, sizeof *b);
    mk_str file = mk_config_copy(c, mk_str_from_c(certificate));
    mk_str key_file = key ? mk_config_copy(c, mk_str_from_c(key)) : MK_STR_NULL;
    if (!b || !file.p || (key && !key_file.p))
        return;
    *b = (struct mk_plugin_certificate){
        .next = c->site->plugin_certificates,
        .pair = {.certificate = file.p, .key = key_file.p, .from_plugin = true},
        .entry = c->plugin->entry};
    c->site->plugin_certificates = b;
}

void mk_config_tls_challenges(struct mk_config *c, const char *folder)
{
    mk_str *kept = &c->generation->tls_challenges;
    if (mk_str_eq(*kept, mk_str_from_c(folder)))
        return;
    if (kept->p) {
        mk_config_error(c, NULL, NULL,
                        "the plugin `%s` wants to answer tls-alpn-01 from `%s`, but another "
                        "plugin already chose the folder `%s`",
                        c->plugin->object.plugin->name, folder, kept->p);
        return;
    }
    *kept = mk_config_copy(c, mk_str_from_c(folder));
    mk_config_allow_path(c, NULL, NULL, *kept);
}
