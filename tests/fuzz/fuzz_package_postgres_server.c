/* SPDX-License-Identifier: Apache-2.0 */
/* Any connection string or URL is rejected, or becomes lists of hosts, addresses and ports to try in turn:
 * all lists have the same length and order. */
#include <errno.h>
#include <monkey/config.h>
#include <postgres/conninfo.h>
#include <postgres/resolver.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "unit/readers/test_allocator.h"

enum { TEXT_MAX = 2000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_errors;
static bool allows_names;

/* ---- Replacements for the configuration and the worker ---- */

void mk_config_error(struct mk_config *c, const void *section, const char *key, const char *fmt, ...)
{
    char text[2 * TEXT_MAX];
    va_list args;
    (void)c, (void)section;
    MK_ASSERT(strcmp(key, "Server") == 0);
    va_start(args, fmt);
    MK_ASSERT(vsnprintf(text, sizeof text, fmt, args) > 0);
    va_end(args);
    n_errors++;
}

mk_str mk_config_copy(struct mk_config *c, mk_str text)
{
    (void)c;
    char *buffer = pool_alloc(NULL, text.len + 1);
    MK_ASSERT(buffer);
    if (text.len)
        memcpy(buffer, text.p, text.len);
    buffer[text.len] = 0;
    return mk_str_of(buffer, text.len);
}

void mk_config_allow_path(struct mk_config *c, const void *section, const char *key, mk_str path)
{
    (void)c, (void)section, (void)key;
    MK_ASSERT(path.len);
}

bool mk_config_user(const struct mk_config *c, uid_t *uid, gid_t *gid)
{
    (void)c, (void)uid, (void)gid;
    return false;
}

void mk_config_allow_connect(struct mk_config *c, const void *section, const char *key, uint16_t port)
{
    (void)c, (void)section, (void)key, (void)port;
}

void mk_config_allow_resolver(struct mk_config *c, const void *section, const char *key)
{
    (void)c, (void)section, (void)key;
    allows_names = true;
}

/* This fake resolves no names. */
int mk_worker_offload(struct mk_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
    (void)w, (void)work, (void)done, (void)ctx;
    MK_ASSERT(allows_names);
    return -EBUSY;
}

/* ---- Addresses ---- */

static unsigned count(const struct mk_buf *list)
{
    unsigned n = 1;
    MK_ASSERT(list->len && list->p[list->len - 1] == 0 && strlen(list->p) + 1 == list->len);
    for (size_t i = 0; i < list->len; i++)
        n += list->p[i] == ',';
    return n;
}

static void check_turn(const struct postgres_host_list *all, const struct postgres_resolver *h)
{
    mk_str hosts = mk_str_from_c(h->hosts.p), addresses = mk_str_from_c(h->addresses.p),
           ports = mk_str_from_c(h->ports.p);
    MK_ASSERT(count(&h->hosts) == all->n && count(&h->addresses) == all->n && count(&h->ports) == all->n);
    for (unsigned i = 0; i < all->n; i++) {
        const struct postgres_host *p = &all->v[(h->first + i) % all->n];
        MK_ASSERT(mk_str_eq(mk_str_cut(&hosts, ','), p->host) && mk_str_eq(mk_str_cut(&ports, ','), p->port));
        MK_ASSERT(mk_str_eq(mk_str_cut(&addresses, ','), p->address));
    }
}

static void check(const struct postgres_host_list *all)
{
    struct postgres_resolver h = {.first = 0};
    bool has_names = false;
    MK_ASSERT(all->n <= POSTGRES_HOSTS_MAX && all->has_names == allows_names);
    for (unsigned i = 0; i < all->n; i++) {
        const struct postgres_host *p = &all->v[i];
        MK_ASSERT(!p->host.p[p->host.len] && !p->address.p[p->address.len] && !p->port.p[p->port.len]);
        MK_ASSERT(!p->is_name || (p->host.len && !p->address.len));
        has_names = has_names || p->is_name;
    }
    MK_ASSERT(has_names == all->has_names || !all->n);
    postgres_resolver_init(&h, NULL, all);
    for (unsigned i = 0; i < 2 * all->n; i++) {
        int e = postgres_resolver_resolve(&h);
        MK_ASSERT(e == (all->has_names ? -ENOMEM : 0));
        if (e == 0)
            check_turn(all, &h);
        postgres_resolver_rotate(&h, h.first);
    }
    MK_ASSERT(h.first == 0);
    postgres_resolver_fini(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct postgres_settings s = {.name = MK_STR("main")};
    if (size > TEXT_MAX || (size && memchr(data, 0, size)))
        return 0;
    n_errors = 0;
    allows_names = false;
    s.server = mk_config_copy(NULL, mk_str_of((const char *)data, size));
    bool is_right = postgres_conninfo_parse(NULL, &s);
    MK_ASSERT(is_right == (n_errors == 0) && n_errors < 2);
    if (is_right)
        check(&s.host_list);
    pool_free();
    return 0;
}
