/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "upstream/health.h"

/* A name that did not resolve is looked up again soon, because its server may be starting up. */
enum { RETRY_MS = 1000 };

/* Owned by the resolver thread, then by the worker. */
struct mk_dns_lookup {
    struct mk_resolver *names; /* NULL: the worker has ended */
    uint16_t port;
    unsigned n;
    int error; /* getaddrinfo() error */
    int os_error;
    struct mk_sockaddr addresses[MK_ADDRESSES_MAX];
    char host[];
};

static uint32_t resolve_ms(const struct mk_upstream *u)
{
    return u->settings->resolve_ms ? u->settings->resolve_ms : MK_RESOLVE_MS;
}

static void append_addrinfo(struct mk_dns_lookup *l, const struct addrinfo *a)
{
    struct mk_sockaddr *at = &l->addresses[l->n];
    if (a->ai_addrlen > sizeof at->v6 || (a->ai_family != AF_INET && a->ai_family != AF_INET6))
        return;
    memcpy(&at->any, a->ai_addr, a->ai_addrlen);
    at->len = a->ai_addrlen;
    if (a->ai_family == AF_INET)
        at->v4.sin_port = htons(l->port);
    else
        at->v6.sin6_port = htons(l->port);
    l->n++;
}

/* Is the lookup still wanted? An exiting worker waits for its threads, which must not start new lookups. */
static bool lookup_is_wanted(struct mk_dns_lookup *l)
{
    return __atomic_load_n(&l->names, __ATOMIC_RELAXED);
}

static void run_getaddrinfo(void *ctx)
{
    struct mk_dns_lookup *l = ctx;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    int e = lookup_is_wanted(l) ? getaddrinfo(l->host, NULL, &hints, &found) : EAI_AGAIN;
    if (e && lookup_is_wanted(l)) { /* AI_ADDRCONFIG fails on a machine that has only loopback addresses */
        hints.ai_flags = 0;
        e = getaddrinfo(l->host, NULL, &hints, &found);
    }
    l->error = e;
    l->os_error = errno;
    if (e)
        return;
    for (const struct addrinfo *a = found; a && l->n < MK_ADDRESSES_MAX; a = a->ai_next)
        append_addrinfo(l, a);
    freeaddrinfo(found);
}

static bool sockaddr_is_equal(const struct mk_sockaddr *a, const struct mk_sockaddr *b)
{
    return a->len == b->len && memcmp(&a->any, &b->any, a->len) == 0;
}

/* Index of the address; n->n: not found. */
static unsigned find_addr_index(const struct mk_resolver *n, const struct mk_sockaddr *at)
{
    unsigned i = 0;
    while (i < n->n && !sockaddr_is_equal(&n->addresses[i], at))
        i++;
    return i;
}

bool mk_resolver_has_addr(const struct mk_resolver *n, const struct mk_sockaddr *at)
{
    return find_addr_index(n, at) < n->n;
}

static void replace_addresses(struct mk_resolver *n, const struct mk_dns_lookup *l)
{
    struct mk_resolver old = *n;
    memcpy(n->addresses, l->addresses, sizeof n->addresses);
    memset(n->avoided_until_ms, 0, sizeof n->avoided_until_ms);
    n->n = l->n;
    n->next = 0;
    for (unsigned i = 0; i < old.n; i++) {
        unsigned at = find_addr_index(n, &old.addresses[i]);
        if (at < n->n)
            n->avoided_until_ms[at] = old.avoided_until_ms[i];
        else
            n->version = old.version + 1;
    }
}

static bool is_allowed(const struct mk_resolver *n, const struct mk_sockaddr *at)
{
    const struct mk_upstream *u = n->server->upstream;
    struct mk_addr addr;
    if (!u->allows)
        return true;
    mk_sockaddr_to_addr(at, &addr);
    return u->allows(u->allows_ctx, &addr);
}

/* Removes the addresses that the upstream does not allow. Later connections use only the addresses that were
 * checked here. */
static void filter_addresses(const struct mk_resolver *n, struct mk_dns_lookup *l)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < l->n; i++)
        if (is_allowed(n, &l->addresses[i]))
            l->addresses[kept++] = l->addresses[i];
    l->n = kept;
}

/* A failed lookup is logged although the old addresses stay in use. */
static void report_lookup_result(const struct mk_resolver *n, const struct mk_dns_lookup *l)
{
    if (n->server->upstream->max_hosts)
        return; /* the request reports it */
    const char *message = l->error == EAI_SYSTEM ? strerror(l->os_error) : gai_strerror(l->error);
    mk_health_report_dns(n->worker, n->server,
                         l->n       ? NULL
                         : l->error ? message
                                    : "it has no address of a known family");
}

static void on_lookup_done(void *ctx)
{
    struct mk_dns_lookup *l = ctx;
    struct mk_resolver *n = l->names;
    if (n) {
        uint64_t now = mk_worker_now_ms(n->worker);
        n->lookup = NULL;
        n->error = l->n ? -EPERM : -EHOSTUNREACH;
        filter_addresses(n, l);
        if (l->n) /* without a result, the old addresses stay in use */
            replace_addresses(n, l);
        report_lookup_result(n, l);
        n->fresh_until_ms = now + (l->n ? resolve_ms(n->server->upstream) : RETRY_MS);
        n->on_change(n);
    }
    mk_mem_free(l);
}

bool mk_resolver_parse_server(const struct mk_upstream_server *server, struct mk_sockaddr *out)
{
    *out = (struct mk_sockaddr){0};
    if (!server->host.p) {
        if (server->path.len >= sizeof out->un.sun_path)
            return false;
        out->un.sun_family = AF_UNIX;
        memcpy(out->un.sun_path, server->path.p, server->path.len);
        out->len = sizeof out->un;
        return true;
    }
    if (inet_pton(AF_INET, server->host.p, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(server->port);
        out->len = sizeof out->v4;
        return true;
    }
    if (inet_pton(AF_INET6, server->host.p, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(server->port);
        out->len = sizeof out->v6;
        return true;
    }
    return false;
}

bool mk_resolver_parse_addr(mk_str text, struct mk_sockaddr *out)
{
    char host[MK_SOCKADDR_TEXT_MAX];
    size_t colon = mk_str_find_last(text, ':');
    uint64_t port;
    mk_str name = mk_str_first(text, colon);
    if (colon == MK_STR_NONE || !mk_num_parse(mk_str_skip(text, colon + 1), &port) || port > UINT16_MAX)
        return false;
    if (name.len > 1 && name.p[0] == '[' && name.p[name.len - 1] == ']')
        name = mk_str_of(name.p + 1, name.len - 2);
    if (!name.len || name.len >= sizeof host)
        return false;
    memcpy(host, name.p, name.len);
    host[name.len] = 0;
    const struct mk_upstream_server server = {.host = mk_str_of(host, name.len), .port = (uint16_t)port};
    return mk_resolver_parse_server(&server, out);
}

void mk_resolver_init(struct mk_resolver *n, const struct mk_upstream_server *server,
                      struct mk_worker *worker, void (*on_change)(struct mk_resolver *n))
{
    *n = (struct mk_resolver){.server = server, .worker = worker, .on_change = on_change};
    n->is_fixed = mk_resolver_parse_server(server, &n->addresses[0]);
    n->n = n->is_fixed && is_allowed(n, &n->addresses[0]);
    n->error = n->is_fixed ? -EPERM : 0;
}

void mk_resolver_fini(struct mk_resolver *n)
{
    if (n->lookup)
        __atomic_store_n(&n->lookup->names, NULL, __ATOMIC_RELAXED);
}

void mk_resolver_refresh(struct mk_resolver *n)
{
    uint64_t now = mk_worker_now_ms(n->worker);
    if (n->is_fixed || n->lookup || now < n->fresh_until_ms)
        return;
    const struct mk_upstream *u = n->server->upstream;
    if (u->max_hosts && now - n->fresh_until_ms > resolve_ms(u))
        n->n = 0; /* a rarely used host may have moved: wait for the result */
    struct mk_dns_lookup *l = mk_mem_zalloc(1, sizeof *l + n->server->host.len + 1);
    if (!l)
        return;
    l->names = n;
    l->port = n->server->port;
    memcpy(l->host, n->server->host.p, n->server->host.len);
    if (mk_thread_pool_submit(n->threads, run_getaddrinfo, on_lookup_done, l)) {
        mk_mem_free(l);
        n->fresh_until_ms = now + RETRY_MS;
        n->error = -EBUSY;
        return;
    }
    n->lookup = l;
}

bool mk_resolver_is_pending(const struct mk_resolver *n)
{
    return n->lookup && !n->n && (!n->fresh_until_ms || n->server->upstream->max_hosts);
}

static bool addr_is_avoided(const struct mk_resolver *n, unsigned i)
{
    return n->avoided_until_ms[i] > mk_worker_now_ms(n->worker);
}

const struct mk_sockaddr *mk_resolver_next_addr(struct mk_resolver *n)
{
    if (!n->n)
        return NULL;
    unsigned best = n->next % n->n;
    for (unsigned i = 0; i < n->n && addr_is_avoided(n, best); i++)
        best = (best + 1) % n->n;
    n->next = (best + 1) % n->n;
    return &n->addresses[best];
}

bool mk_resolver_mark_failed(struct mk_resolver *n, const struct mk_sockaddr *at)
{
    unsigned i = find_addr_index(n, at);
    if (i < n->n && n->n > 1)
        n->avoided_until_ms[i] = mk_worker_now_ms(n->worker) + n->server->upstream->settings->fail_ms;
    for (i = 0; i < n->n; i++)
        if (!addr_is_avoided(n, i))
            return n->n > 1;
    return false;
}
