/* SPDX-License-Identifier: Apache-2.0 */
#include "demand.h"

#include <errno.h>

#include "hostname.h"
#include "rate.h"
#include "refusals.h"

enum {
    WAITERS_MAX = 256,  /* of a worker */
    UNLISTED_MAX = 192, /* only listed names get a waiter beyond */
    CLIENT_MAX = 16,    /* waiters of a client network */
    WAIT_MS = 30000,    /* an authority usually takes less than 20 s */
    REPEAT_MS = 3000,   /* the request may be lost, with its receiver */
    TICK_MS = 500,
    NAME_SIZE = 256,
};

struct waiter {
    struct waiter *next;
    struct mk_tls_waiter *tls;
    struct mk_addr network;
    uint64_t until_ms;
};

struct wanted_name {
    struct wanted_name *next;
    struct waiter *waiters;
    struct mk_addr network; /* of the first client */
    uint64_t requested_ms;
    size_t len;
    char name[NAME_SIZE];
};

struct acme_demand {
    struct mk_worker *worker;
    const struct mk_plugin *plugin;
    const struct acme_demand_stats *stats;
    const struct acme_cert_spec *specs; /* certificates of the configuration */
    const struct acme_allow_list *allow_list;
    struct wanted_name *names;
    size_t n_waiters;
    struct mk_timer timer;
    struct acme_refusals refusals;
};

static mk_str name_of(const struct wanted_name *w)
{
    return mk_str_of(w->name, w->len);
}

/* ---- Waiters ---- */

static void end_waiter(struct acme_demand *d, struct waiter *w, bool is_issued)
{
    d->n_waiters--;
    mk_tls_waiter_resume(w->tls, is_issued);
    mk_mem_free(w);
}

/* Removes the name, and ends all its waiters. */
static void end_name(struct acme_demand *d, struct wanted_name **at, bool is_issued)
{
    struct wanted_name *name = *at;
    *at = name->next;
    for (struct waiter *w; (w = name->waiters);) {
        name->waiters = w->next;
        end_waiter(d, w, is_issued);
    }
    mk_mem_free(name);
}

static struct wanted_name **find_name(struct acme_demand *d, mk_str name)
{
    struct wanted_name **at = &d->names;
    while (*at && !mk_str_eq(name_of(*at), name))
        at = &(*at)->next;
    return at;
}

static size_t count_client_waiters(const struct acme_demand *d, const struct mk_addr *network)
{
    size_t n = 0;
    for (const struct wanted_name *name = d->names; name; name = name->next)
        for (const struct waiter *w = name->waiters; w; w = w->next)
            n += w->network.is_unix == network->is_unix &&
                 memcmp(w->network.ip, network->ip, sizeof network->ip) == 0;
    return n;
}

/* ---- Requests to the issuer ---- */

static int send_request(struct acme_demand *d, struct wanted_name *name)
{
    const struct acme_message m = {
        .kind = ACME_MESSAGE_REQUEST, .from = (uint16_t)mk_worker_index(d->worker), .network = name->network};
    name->requested_ms = mk_worker_now_ms(d->worker);
    return acme_message_send(d->worker, d->plugin, 0, &m, name_of(name));
}

static void end_late_waiters(struct acme_demand *d, struct wanted_name *name, uint64_t now)
{
    for (struct waiter **at = &name->waiters; *at;) {
        struct waiter *w = *at;
        if (now < w->until_ms) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        acme_demand_stats_count(d->worker, d->stats, ACME_RESULT_TIMEOUT);
        end_waiter(d, w, false);
    }
}

static void on_tick(struct mk_timer *timer)
{
    struct acme_demand *d = MK_CONTAINER(timer, struct acme_demand, timer);
    uint64_t now = mk_worker_now_ms(d->worker);
    for (struct wanted_name **at = &d->names; *at;) {
        struct wanted_name *name = *at;
        end_late_waiters(d, name, now);
        if (!name->waiters) {
            end_name(d, at, false);
            continue;
        }
        if (now - name->requested_ms >= REPEAT_MS)
            (void)send_request(d, name);
        at = &name->next;
    }
    if (d->names)
        mk_timer_set(&d->timer, d->worker, TICK_MS);
}

static struct wanted_name *add_name(struct acme_demand *d, mk_str text, const struct mk_addr *network)
{
    struct wanted_name *name = text.len < NAME_SIZE ? mk_mem_zalloc(1, sizeof *name) : NULL;
    if (!name)
        return NULL;
    memcpy(name->name, text.p, text.len);
    name->len = text.len;
    name->network = *network;
    if (send_request(d, name)) {
        mk_mem_free(name);
        return NULL;
    }
    if (!d->names)
        mk_timer_set(&d->timer, d->worker, TICK_MS);
    name->next = d->names;
    return d->names = name;
}

/* Names of the configuration get their certificates without a client's request. */
static bool is_configured(const struct acme_demand *d, mk_str name)
{
    for (const struct acme_cert_spec *spec = d->specs; spec; spec = spec->next)
        for (size_t i = 0; i < spec->n; i++)
            if (mk_str_eq(spec->names[i], name))
                return true;
    return false;
}

int acme_demand_request(struct acme_demand *d, mk_str text, const struct mk_addr *client,
                        struct mk_tls_waiter *waiter)
{
    uint64_t now = mk_worker_now_ms(d->worker);
    struct mk_addr network = acme_rate_network(client);
    if (!acme_hostname_is_public(text) || is_configured(d, text))
        return -EINVAL;
    if (acme_refusals_get(&d->refusals, text, now)) {
        acme_demand_stats_count(d->worker, d->stats, ACME_RESULT_REMEMBERED);
        return -EACCES;
    }
    if (d->n_waiters >= (acme_allow_list_has(d->allow_list, text) ? WAITERS_MAX : UNLISTED_MAX) ||
        count_client_waiters(d, &network) >= CLIENT_MAX) {
        acme_demand_stats_count(d->worker, d->stats, ACME_RESULT_BUSY);
        return -EBUSY;
    }
    struct wanted_name *name = *find_name(d, text);
    struct waiter *w = mk_mem_zalloc(1, sizeof *w);
    if (w && !name)
        name = add_name(d, text, &network);
    if (!w || !name) {
        mk_mem_free(w);
        return -ENOMEM;
    }
    *w = (struct waiter){.next = name->waiters, .tls = waiter, .network = network, .until_ms = now + WAIT_MS};
    name->waiters = w;
    d->n_waiters++;
    return 0;
}

void acme_demand_cancel(struct acme_demand *d, struct mk_tls_waiter *waiter)
{
    for (struct wanted_name *name = d->names; name; name = name->next)
        for (struct waiter **at = &name->waiters; *at; at = &(*at)->next) {
            struct waiter *w = *at;
            if (w->tls != waiter)
                continue;
            *at = w->next;
            d->n_waiters--;
            mk_mem_free(w);
            return; /* the next tick removes a name without waiters */
        }
}

void acme_demand_on_answer(struct acme_demand *d, const struct acme_message *m, mk_str text)
{
    uint64_t now = mk_worker_now_ms(d->worker);
    bool is_issued = m->kind == ACME_MESSAGE_ISSUED;
    /* If the certificate has expired although it is new, the clock is wrong: requesting it again is useless. */
    acme_refusals_set(&d->refusals, text, now + (is_issued ? (uint64_t)WAIT_MS : m->refused_ms), now);
    struct wanted_name **at = find_name(d, text);
    if (*at)
        end_name(d, at, is_issued);
}

struct acme_demand *acme_demand_new(struct mk_worker *worker, const struct mk_plugin *plugin,
                                    const struct acme_demand_stats *stats, const struct acme_cert_spec *specs,
                                    const struct acme_allow_list *allow_list)
{
    struct acme_demand *d = mk_mem_zalloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->worker = worker;
    d->plugin = plugin;
    d->stats = stats;
    d->specs = specs;
    d->allow_list = allow_list;
    mk_timer_init(&d->timer, on_tick);
    acme_refusals_init(&d->refusals);
    return d;
}

void acme_demand_free(struct acme_demand *d)
{
    if (!d)
        return;
    mk_timer_stop(&d->timer);
    while (d->names)
        end_name(d, &d->names, false);
    mk_mem_free(d);
}
