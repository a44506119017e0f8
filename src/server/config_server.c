/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin asks of the server around it while a configuration is being loaded. */
#include <monkey/tls.h>

#include "base/assert.h"
#include "server/config.h"
#include "server/plugins.h"

void *mk_config_shared(struct mk_config *c, const char *name, size_t size)
{
    mk_str n = mk_str_from_c(name);
    void *p = n.len <= MK_SHARED_NAME ? mk_shared_take(c->generation->shared, n, size) : NULL;
    if (n.len > MK_SHARED_NAME)
        mk_config_error(c, NULL, NULL, "the name of shared memory `%s` is longer than %d bytes", name,
                        MK_SHARED_NAME);
    else if (!p)
        mk_config_error(c, NULL, NULL, "no memory of %zu bytes to share as `%s`", size, name);
    return p;
}

struct mk_logfile *mk_config_log(struct mk_config *c, const void *section, const char *key, mk_str where,
                                 uint64_t max_size, unsigned keep)
{
    mk_err e;
    mk_str path = mk_logfile_is_word(where) ? mk_config_copy(c, where) : mk_config_path(c, section, where);
    if (!path.p)
        return NULL;
    struct mk_logfile *f = mk_generation_log(c->generation, path, max_size, keep, &e);
    if (!f && e == -E2BIG)
        mk_config_error(c, section, key, "more than %d log files", MK_LOGFILES_MAX);
    else if (!f)
        mk_config_error(c, section, key, "the log `%s` cannot be opened: %s", path.p, mk_err_text(e));
    return f;
}

void mk_config_own_access_log(struct mk_config *c)
{
    MK_ASSERT(c->site);
    c->site->host.has_own_access_log = true;
}

void mk_config_want_children(struct mk_config *c)
{
    c->generation->wants_children = true;
}

bool mk_config_user(const struct mk_config *c, uid_t *uid, gid_t *gid)
{
    const struct mk_generation *g = c->generation;
    if (!g->has_identity)
        return false;
    *uid = g->identity.uid;
    *gid = g->identity.gid;
    return true;
}

void mk_config_allow_path(struct mk_config *c, mk_str path)
{
    struct mk_allowed *a = mk_config_alloc(c, sizeof *a);
    mk_str copy = mk_config_copy(c, path); /* ends with a NUL */
    if (!a || !copy.p)
        return;
    *a = (struct mk_allowed){.next = c->generation->allowed, .path = copy};
    c->generation->allowed = a;
}

bool mk_config_has_tls(const struct mk_config *c)
{
    return mk_generation_has_tls(c->generation);
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
    struct mk_brought *b = mk_config_alloc(c, sizeof *b);
    mk_str file = mk_config_copy(c, mk_str_from_c(certificate));
    mk_str key_file = key ? mk_config_copy(c, mk_str_from_c(key)) : (mk_str){NULL, 0};
    if (!b || !file.p || (key && !key_file.p))
        return;
    *b = (struct mk_brought){.next = c->site->brought,
                             .pair = {.certificate = file.p, .key = key_file.p, .brought = true},
                             .entry = c->plugin->entry};
    c->site->brought = b;
}

void mk_config_tls_challenges(struct mk_config *c, const char *folder)
{
    mk_str *kept = &c->generation->tls_challenges;
    if (mk_str_eq(*kept, mk_str_from_c(folder)))
        return;
    if (kept->p) {
        mk_config_error(c, NULL, NULL,
                        "the plugin `%s` wants tls-alpn-01 to be answered from `%s`, but another "
                        "folder, `%s`, has been chosen already",
                        c->plugin->object.plugin->name, folder, kept->p);
        return;
    }
    *kept = mk_config_copy(c, mk_str_from_c(folder));
    mk_config_allow_path(c, *kept);
}
