/* SPDX-License-Identifier: Apache-2.0 */
#include "locations.h"

#include "credentials.h"

#include <errno.h>
#include <monkey/host.h>
#include <monkey/text.h>
#include <stdlib.h>

int auth_locations_load(struct mk_config *c, void **data)
{
    struct auth_config *setup = mk_config_alloc(c, sizeof *setup);
    struct auth_shared *shared = mk_config_shared(c, "auth.state", sizeof *shared);
    if (!setup || !shared)
        return -ENOMEM;
    if (!atomic_load(&shared->has_secret)) {
        mk_random(shared->secret, sizeof shared->secret);
        atomic_store(&shared->has_secret, 1);
    }
    setup->shared = shared;
    *data = setup;
    return 0;
}

static const struct auth_users *load_users_once(struct mk_config *c, struct auth_config *setup,
                                                const struct auth_location *p)
{
    for (const struct auth_users *u = setup->files; u; u = u->next)
        if (mk_str_eq(u->path, p->file))
            return u;
    struct auth_users *u = auth_users_load(c, p, p->file);
    if (u) {
        u->next = setup->files;
        setup->files = u;
    }
    return u;
}

/* Writes the realm as a quoted string, which the client unquotes (RFC 9110, section 5.6.4). */
static bool make_basic_challenge(struct mk_config *c, struct auth_location *p)
{
    char buf[512];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add(&b, MK_STR("Basic realm=\""));
    for (size_t i = 0; i < p->title.len; i++) {
        if (p->title.p[i] == '"' || p->title.p[i] == '\\')
            mk_buf_add_char(&b, '\\');
        mk_buf_add_char(&b, p->title.p[i]);
    }
    mk_buf_add(&b, MK_STR("\", charset=\"UTF-8\""));
    p->challenge = mk_config_copy(c, mk_buf_str(&b));
    return p->challenge.p && !b.failed;
}

static void prepare_digest(struct mk_config *c, struct auth_location *p)
{
    for (size_t i = 0; i < p->title.len; i++)
        if (p->title.p[i] == '"' || p->title.p[i] == '\\' || p->title.p[i] == ':') {
            mk_config_error(c, p, "Realm", "with Digest, the realm must not contain '\"', '\\' or ':'");
            return;
        }
    p->offers[AUTH_SHA256] = auth_users_has_realm(p->users, p->title, AUTH_SHA256);
    p->offers[AUTH_MD5] = p->md5 && auth_users_has_realm(p->users, p->title, AUTH_MD5);
    if (p->offers[AUTH_SHA256] || p->offers[AUTH_MD5])
        return;
    p->offers[AUTH_SHA256] = true;
    mk_config_warn(c, p, "UserFile",
                   "%.*s has no Digest entry with the realm \"%.*s\": no client will get access",
                   MK_STR_ARG(p->users->path), MK_STR_ARG(p->title));
    mk_config_hint(c, "monkey passwd --digest \"%.*s\" %.*s NAME", MK_STR_ARG(p->title),
                   MK_STR_ARG(p->users->path));
}

static void prepare_basic(struct mk_config *c, struct auth_location *p)
{
    if (p->users->n_basic)
        return;
    mk_config_warn(c, p, "UserFile", "%.*s has no Basic entry: no client will get access",
                   MK_STR_ARG(p->users->path));
    mk_config_hint(c, "monkey passwd %.*s NAME", MK_STR_ARG(p->users->path));
}

static bool user_exists(const struct auth_location *p, mk_str name)
{
    if (p->type == AUTH_TYPE_BASIC)
        return auth_users_find(p->users, name) != NULL;
    for (size_t i = 0; i < p->users->n_digest; i++)
        if (mk_str_eq(p->users->digest[i].name, name) && mk_str_eq(p->users->digest[i].realm, p->title))
            return true;
    return false;
}

static bool prepare_location(struct mk_config *c, struct auth_config *setup, struct auth_location *p)
{
    struct auth_networks *n = &p->required.networks;
    if (!n->set && !(n->set = mk_config_network_set(c, n->v, NULL, n->n)))
        return false;
    if (p->users || p->type == AUTH_TYPE_NONE) /* already prepared for another host */
        return true;
    if (!p->file.p) {
        mk_config_error(c, p, NULL, "`UserFile` is missing");
        return true;
    }
    if (!auth_has_no_controls(p->title)) {
        mk_config_error(c, p, "Realm", "control characters are not allowed in the realm");
        return true;
    }
    p->users = load_users_once(c, setup, p);
    if (!p->users || !make_basic_challenge(c, p))
        return false;
    if (p->type == AUTH_TYPE_DIGEST)
        prepare_digest(c, p);
    else
        prepare_basic(c, p);
    for (size_t i = 0; i < p->required.names.n; i++)
        if (!user_exists(p, p->required.names.v[i]))
            mk_config_report(c, MK_LOG_WARN, p, "Require", p->required.names.v[i],
                             "%.*s has no entry for user \"%.*s\" in this location",
                             MK_STR_ARG(p->users->path), MK_STR_ARG(p->required.names.v[i]));
    return true;
}

static int compare_longest_first(const void *a, const void *b)
{
    const struct auth_location *x = *(const struct auth_location *const *)a,
                               *y = *(const struct auth_location *const *)b;
    if (x->location.len != y->location.len)
        return x->location.len > y->location.len ? -1 : 1;
    return mk_str_cmp(x->location, y->location);
}

static void report_duplicates(struct mk_config *c, const struct auth_vhost *site)
{
    for (size_t i = 1; i < site->n; i++)
        if (mk_str_eq(site->places[i - 1]->location, site->places[i]->location))
            mk_config_error(c, site->places[i], "Location", "duplicate section [AUTH] for %.*s",
                            MK_STR_ARG(site->places[i]->location));
}

int auth_locations_bind_vhost(struct mk_config *c, struct mk_vhost *host, void *data, void **host_data)
{
    struct auth_vhost *site = mk_config_alloc(c, sizeof *site);
    struct auth_location *p;
    size_t n = 0;
    (void)host;
    for (p = NULL; (p = mk_config_section(c, &auth_table, p));)
        n++;
    if (n == 0)
        return 0;
    if (!site || !(site->places = mk_config_alloc(c, n * sizeof(struct auth_location *))))
        return -ENOMEM;
    site->setup = data;
    for (p = NULL; (p = mk_config_section(c, &auth_table, p));) {
        if (!prepare_location(c, data, p))
            return -ENOMEM;
        site->places[site->n++] = p;
    }
    qsort(site->places, n, sizeof(struct auth_location *), compare_longest_first);
    report_duplicates(c, site);
    *host_data = site;
    return 0;
}

bool auth_location_allows_user(const struct auth_location *place, mk_str user)
{
    const struct auth_names *names = &place->required.names;
    for (size_t i = 0; i < names->n; i++)
        if (mk_str_eq(names->v[i], user))
            return true;
    return names->n == 0;
}

bool auth_location_allows_addr(const struct auth_location *place, const struct mk_addr *peer)
{
    return mk_network_set_contains(place->required.networks.set, peer);
}

/* "/private/" also covers "/private", because a handler may respond to it with the folder's content. */
static bool location_covers(mk_str location, mk_str path)
{
    if (location.len == path.len + 1 && location.p[path.len] == '/')
        location.len--;
    return mk_str_starts(path, location);
}

static const struct auth_location *find_location(const struct auth_vhost *site, mk_str path)
{
    for (size_t i = 0; i < site->n; i++)
        if (location_covers(site->places[i]->location, path))
            return site->places[i];
    return NULL;
}

static bool requires_password(const struct auth_location *place)
{
    return place && place->type != AUTH_TYPE_NONE;
}

unsigned auth_locations_find(const struct auth_vhost *site, const struct mk_request *request,
                             const struct auth_location **place)
{
    const mk_str *variants;
    size_t n;
    *place = find_location(site, mk_request_path(request));
    unsigned status = mk_request_variants(request, &variants, &n);
    for (size_t i = 0; i < n; i++) {
        const struct auth_location *other = find_location(site, variants[i]);
        if (other == *place || !requires_password(other))
            continue;
        if (requires_password(*place))
            return 403; /* no password is valid for both */
        *place = other;
    }
    return status;
}
