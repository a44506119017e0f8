/* SPDX-License-Identifier: Apache-2.0 */
/* Checks before the first request: PROXY protocol headers, and rules that need only an address. */
#include "accept.h"

#include "proxy_protocol.h"

enum { WARN_EVERY_MS = 10000 };

void security_log_proxy_fault(struct security_worker *w, struct mk_worker *worker, const struct mk_addr *peer,
                              const char *what)
{
    char buf[64];
    struct mk_buf text = mk_buf_fixed(buf, sizeof buf);
    uint64_t now = mk_worker_now_ms(worker);
    if (!w)
        return;
    w->n_faults++;
    if (w->has_logged && now - w->logged_ms < WARN_EVERY_MS)
        return;
    mk_addr_format(peer, &text);
    mk_worker_log(worker, MK_LOG_WARN, "security: trusted proxy %.*s: %s (%u times)",
                  MK_STR_ARG(mk_buf_str(&text)), what, w->n_faults);
    w->has_logged = true;
    w->logged_ms = now;
    w->n_faults = 0;
}

/* Reads the PROXY header. Returns MK_NEXT once the client address of the connection is known. */
static enum mk_verdict read_proxy_header(struct mk_conn *c, struct security_worker *w)
{
    struct security_proxy_header header;
    int n = security_proxy_header_parse(mk_conn_peek(c), &header);
    if (n == 0)
        return MK_WAIT;
    if (n < 0) {
        security_log_proxy_fault(w, mk_conn_worker(c), mk_conn_client_addr(c), header.wrong);
        return MK_ERROR;
    }
    mk_conn_consume(c, (size_t)n);
    if (header.is_secure)
        mk_conn_set_secure(c);
    return header.has_peer && mk_conn_set_client_addr(c, &header.peer) ? MK_ERROR : MK_NEXT;
}

/* Returns whether every request of the peer would be denied. An `Allow` rule with request conditions may
 * admit some requests; a `Deny` rule with such conditions changes nothing. */
static bool is_addr_denied(const struct security_policy *place, const struct mk_addr *peer)
{
    struct security_walk walk = security_walk_of(place, peer);
    for (const struct security_rule *rule; (rule = security_walk_next(&walk));) {
        if (!mk_conditions_match_addr(rule->conditions, peer))
            continue;
        if (rule->allows)
            return false;
        if (mk_conditions_subjects(rule->conditions) == MK_CONDITION_FROM)
            return true;
    }
    return false;
}

enum mk_verdict security_accept_check(struct mk_conn *c, const struct security *all,
                                      struct security_worker *w)
{
    const struct security_policy *accept_policy = all->accept_policy;
    if (all->requires_proxy_header &&
        mk_network_set_contains(all->top->trusted.set, mk_conn_client_addr(c))) {
        enum mk_verdict v = read_proxy_header(c, w);
        if (v != MK_NEXT)
            return v;
    }
    if (!accept_policy || !(accept_policy->subjects & MK_CONDITION_FROM))
        return MK_NEXT;
    const struct mk_addr *peer = mk_conn_client_addr(c);
    if (mk_network_set_contains(accept_policy->real.trusted, peer))
        return MK_NEXT; /* a trusted proxy names the client in each request */
    return is_addr_denied(accept_policy, peer) ? MK_ERROR : MK_NEXT;
}
