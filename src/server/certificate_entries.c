/* SPDX-License-Identifier: Apache-2.0 */
#include "server/certificate_entries.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* ---- Certificates on demand ---- */

enum { ON_DEMAND_MAX = 100000 };

/* Returns the folder of the host, unless an earlier host has the same one; NULL: none. */
static const char *on_demand_folder(const struct mk_config_generation *g, const struct mk_vhost_config *of)
{
    const char *folder = of->on_demand ? of->on_demand->folder : NULL;
    for (const struct mk_vhost_config *s = g->sites; folder && s != of; s = s->next)
        if (s->on_demand && strcmp(s->on_demand->folder, folder) == 0)
            return NULL;
    return folder;
}

/* Returns the length of NAME in NAME.pem; 0: it is another file. */
static size_t certificate_name_len(const char *file)
{
    size_t len = strlen(file);
    return file[0] != '.' && len > 4 && strcmp(file + len - 4, ".pem") == 0 ? len - 4 : 0;
}

static size_t count_on_demand(const char *folder)
{
    DIR *d = folder ? opendir(folder) : NULL;
    const struct dirent *e;
    size_t n = 0;
    while (d && n < ON_DEMAND_MAX && (e = readdir(d)))
        n += certificate_name_len(e->d_name) > 0;
    if (d)
        closedir(d);
    return n;
}

static bool add_on_demand(struct mk_arena *arena, const struct mk_vhost_config *s, const char *file,
                          struct mk_tls_inventory_entry *out)
{
    mk_str path = mk_arena_printf(arena, "%s/%s", s->on_demand->folder, file);
    mk_str *name = mk_arena_zalloc(arena, 1, sizeof *name);
    if (!path.p || !name)
        return false;
    *name = mk_str_of(path.p + path.len - strlen(file), certificate_name_len(file));
    *out = (struct mk_tls_inventory_entry){.pair = {.certificate = path.p, .from_plugin = true},
                                           .written_at = s->host.written_at.p,
                                           .hosts = name,
                                           .n_hosts = 1};
    return true;
}

/* Ignores files that were created after they were counted (`max`). */
static bool collect_on_demand(struct mk_arena *arena, const struct mk_vhost_config *s, const char *folder,
                              size_t max, struct mk_certificate_entries *out)
{
    DIR *d = folder ? opendir(folder) : NULL;
    const struct dirent *e;
    bool ok = true;
    while (d && ok && out->n < max && (e = readdir(d)))
        if (certificate_name_len(e->d_name) && (ok = add_on_demand(arena, s, e->d_name, &out->at[out->n])))
            out->n++;
    if (d)
        closedir(d);
    return ok;
}

/* ---- All certificates ---- */

static size_t count_certificates(const struct mk_config_generation *g)
{
    size_t n = 0;
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next) {
        n += s->settings.site.tls.certificates.n;
        for (const struct mk_plugin_certificate *one = s->plugin_certificates; one; one = one->next)
            n++;
        n += count_on_demand(on_demand_folder(g, s));
    }
    return n;
}

static const char *format_pos(struct mk_arena *arena, const struct mk_conf_source_pos *at)
{
    size_t size = at->file.len + 16;
    char *text = mk_arena_zalloc(arena, 1, size);
    if (text)
        (void)snprintf(text, size, "%.*s:%u", MK_STR_ARG(at->file), at->line);
    return text;
}

static struct mk_tls_inventory_entry make_entry(const struct mk_vhost_config *s,
                                                const struct mk_tls_keypair *pair)
{
    return (struct mk_tls_inventory_entry){.pair = *pair,
                                           .written_at = s->host.written_at.p,
                                           .hosts = s->host.names,
                                           .n_hosts = s->host.n_names};
}

static void collect_host(struct mk_arena *arena, const struct mk_vhost_config *s,
                         struct mk_certificate_entries *out)
{
    const struct mk_certificates *c = &s->settings.site.tls.certificates;
    for (const struct mk_plugin_certificate *one = s->plugin_certificates; one; one = one->next)
        if (!one->pair.kept_by)
            out->at[out->n++] = make_entry(s, &one->pair);
    for (size_t i = 0; i < c->n; i++) {
        const struct mk_certificate *one = &c->at[i];
        struct mk_tls_keypair pair = {.certificate = one->file.p, .key = one->key.p, .ocsp = one->ocsp.p};
        struct mk_tls_inventory_entry *e = &out->at[out->n++];
        const char *at = one->entry ? format_pos(arena, &one->entry->at) : NULL;
        *e = make_entry(s, &pair);
        e->written_at = at ? at : e->written_at;
    }
}

bool mk_certificate_entries_collect(const struct mk_config_generation *g, struct mk_arena *arena,
                                    struct mk_certificate_entries *out)
{
    size_t n = count_certificates(g);
    *out = (struct mk_certificate_entries){.at = mk_arena_zalloc(arena, n ? n : 1, sizeof *out->at)};
    if (!out->at)
        return false;
    for (const struct mk_vhost_config *s = g->sites; s; s = s->next)
        collect_host(arena, s, out);
    bool ok = true;
    for (const struct mk_vhost_config *s = g->sites; s && ok; s = s->next)
        ok = collect_on_demand(arena, s, on_demand_folder(g, s), n, out);
    return ok;
}
