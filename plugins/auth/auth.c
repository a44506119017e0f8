/* SPDX-License-Identifier: Apache-2.0 */
/* Requires a user name and password where the configuration says so, before a handler gets the request. */
#include "credentials.h"
#include "digest.h"
#include "passwd_command.h"
#include "verify.h"
#include "verify_queue.h"

#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

MK_PLUGIN_DECLARE(auth);

/* The check of a request at one location. */
struct auth_check {
    struct mk_request *request;
    struct mk_response *response;
    const struct auth_location *place;
    struct auth_shared *shared;
    struct auth_verify_queue *queue; /* NULL outside a worker, as in `monkey explain` */
    struct auth_attempt_key counted;
    int64_t now;
};

static enum mk_verdict respond_error(struct auth_check *v, unsigned status)
{
    mk_response_set_status(v->response, status);
    return MK_ERROR;
}

static enum mk_verdict respond_retry_after(struct auth_check *v, unsigned status, uint32_t seconds)
{
    char buf[16];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf);
    mk_buf_add_num(&b, seconds);
    mk_response_set_header(v->response, MK_STR("Retry-After"), mk_buf_str(&b));
    return respond_error(v, status);
}

static enum mk_verdict respond_401(struct auth_check *v, bool stale)
{
    int e = v->place->type == AUTH_TYPE_DIGEST
                ? auth_digest_challenge(v->shared, v->place, v->response, v->now, stale)
                : mk_response_add_header_nocopy(v->response, MK_STR("WWW-Authenticate"), v->place->challenge);
    return respond_error(v, e ? 503 : 401);
}

/* Escapes the name, which the client chose, so that its quotes cannot be mistaken for ours. */
static void log_user_attempt(struct auth_check *v, const char *what, mk_str user)
{
    char buf[256];
    struct mk_buf b = mk_buf_fixed(buf, sizeof buf);
    mk_log_escape(&b, user);
    mk_request_log(v->request, MK_LOG_WARN, "auth: %s \"%.*s\" at %.*s", what, MK_STR_ARG(mk_buf_str(&b)),
                   MK_STR_ARG(v->place->location));
}

static enum mk_verdict reject_credentials(struct auth_check *v, mk_str user)
{
    log_user_attempt(v, "wrong user or password:", user);
    uint32_t seconds = auth_attempts_blocked_s(v->shared, &v->counted, v->now);
    if (seconds)
        mk_request_log(v->request, MK_LOG_WARN,
                       "auth: %u failed attempts from this address: blocked for %u s", v->place->attempts,
                       seconds);
    return respond_401(v, false);
}

/* A location for which the request has already authenticated. */
struct grant {
    const struct auth_location *place;
    const struct grant *before;
};

static const char grants;

static bool locations_share_password(const struct auth_location *a, const struct auth_location *b)
{
    return a->users == b->users && a->type == b->type && mk_str_eq(a->title, b->title);
}

/* Returns whether the request has already authenticated with this location's password. A rewritten request is
 * checked for each of its paths, but Digest credentials cannot be verified twice, because verification uses
 * up their nonce count. */
static bool has_cached_grant(const struct auth_check *v)
{
    const struct grant *g = mk_request_attached(v->request, &grants);
    while (g && !locations_share_password(g->place, v->place))
        g = g->before;
    return g;
}

static bool add_grant(struct auth_check *v, mk_str user)
{
    struct grant *g = mk_request_alloc(v->request, sizeof *g);
    if (!g || mk_request_set_user(v->request, user))
        return false;
    *g = (struct grant){.place = v->place, .before = mk_request_attached(v->request, &grants)};
    return mk_request_attach(v->request, &grants, g, NULL) == 0;
}

static enum mk_verdict grant_access(struct auth_check *v, mk_str user)
{
    if (!auth_location_allows_user(v->place, user)) {
        log_user_attempt(v, "access denied for user", user);
        return respond_error(v, 403);
    }
    return has_cached_grant(v) || add_grant(v, user) ? MK_NEXT : respond_error(v, 503);
}

static void leave_job_on_request_end(void *wait)
{
    auth_waiter_leave(wait);
}

static struct auth_waiter *get_waiter(struct auth_check *v)
{
    struct auth_waiter *wait = mk_request_attached(v->request, &MK_PLUGIN_OF(auth));
    if (wait)
        return wait;
    wait = mk_request_alloc(v->request, sizeof *wait);
    if (!wait)
        return NULL;
    *wait = (struct auth_waiter){.request = v->request};
    return mk_request_attach(v->request, &MK_PLUGIN_OF(auth), wait, leave_job_on_request_end) ? NULL : wait;
}

static enum mk_verdict apply_verify_result(struct auth_check *v, mk_str user, enum auth_verify_result result)
{
    if (result == AUTH_RESULT_VALID)
        return grant_access(v, user);
    return result == AUTH_RESULT_INVALID ? reject_credentials(v, user) : respond_retry_after(v, 503, 1);
}

static enum mk_verdict join_running_check(struct auth_check *v, const struct auth_verify_query *q,
                                          struct auth_verify_job *job)
{
    struct auth_waiter *wait = get_waiter(v);
    if (!wait)
        return respond_error(v, 503);
    auth_waiter_join_job(wait, job, q);
    return MK_WAIT;
}

/* Verifies an expensive hash in a helper thread, because it would block the loop. */
static enum mk_verdict verify_in_background(struct auth_check *v, struct auth_verify_query *q)
{
    struct auth_waiter *wait = mk_request_attached(v->request, &MK_PLUGIN_OF(auth));
    if (wait && wait->job)
        return MK_WAIT;
    if (wait && wait->place == v->place && wait->result != AUTH_RESULT_UNKNOWN)
        return apply_verify_result(v, q->user, wait->result);
    auth_verify_queue_set_mac(v->queue, q);
    struct auth_verify_job *same = auth_verify_queue_find_job(v->queue, q);
    if (same)
        return join_running_check(v, q, same);
    uint32_t seconds = auth_attempts_blocked_s(v->shared, &v->counted, v->now);
    if (seconds)
        return respond_retry_after(v, 429, seconds);
    if (auth_verify_queue_is_cached(v->queue, q))
        return grant_access(v, q->user);
    if (!(wait = get_waiter(v)))
        return respond_error(v, 503);
    if ((seconds = auth_attempts_charge(v->shared, &v->counted, v->now)))
        return respond_retry_after(v, 429, seconds);
    if (!auth_verify_queue_submit(v->queue, q, wait))
        return respond_retry_after(v, 503, 1);
    return wait->job ? MK_WAIT : apply_verify_result(v, q->user, wait->result);
}

static enum mk_verdict verify_fast_hash(struct auth_check *v, const struct auth_verify_query *q)
{
    uint32_t seconds = auth_attempts_charge(v->shared, &v->counted, v->now);
    if (seconds)
        return respond_retry_after(v, 429, seconds);
    bool matches = q->known && auth_verify_fast(q->known->hash, q->password);
    if (!matches || !q->exists)
        return reject_credentials(v, q->user);
    auth_attempts_refund(v->shared, &v->counted, v->now);
    return grant_access(v, q->user);
}

static enum mk_verdict check_basic(struct auth_check *v, mk_str text)
{
    char buf[AUTH_BASIC_BUF_SIZE];
    struct auth_basic basic;
    enum mk_verdict verdict;
    if (!auth_basic_parse(text, buf, &basic)) {
        verdict =
            respond_401(v, false); /* cannot match a user: too long, not base64, or with control characters */
    } else {
        struct auth_verify_query q = {
            .place = v->place, .user = basic.user, .password = basic.password, .counted = v->counted};
        q.known = auth_users_find(v->place->users, q.user);
        q.exists = q.known != NULL;
        if (!q.exists)
            q.known = auth_users_find_decoy(v->place->users, v->shared->secret, q.user);
        verdict = !q.known || auth_hash_is_fast(q.known->hash) ? verify_fast_hash(v, &q)
                                                               : verify_in_background(v, &q);
    }
    explicit_bzero(buf, sizeof buf);
    return verdict;
}

static enum mk_verdict check_digest(struct auth_check *v, mk_str text)
{
    mk_str user = {NULL, 0};
    uint32_t seconds = auth_attempts_blocked_s(v->shared, &v->counted, v->now);
    if (seconds)
        return respond_retry_after(v, 429, seconds);
    switch (auth_digest_check(v->shared, v->place, v->request, text, v->now, &user)) {
    case AUTH_DIGEST_VALID:
        return grant_access(v, user);
    case AUTH_DIGEST_INVALID:
        auth_attempts_charge(v->shared, &v->counted, v->now);
        return reject_credentials(v, user);
    case AUTH_DIGEST_STALE:
        return respond_401(v, true);
    case AUTH_DIGEST_NOT_OURS:
        return respond_401(v, false);
    case AUTH_DIGEST_WRONG_URI:
        break;
    }
    return respond_error(v, 400);
}

/* Finds the value of Authorization; absent if there is none. Returns false if there are two headers, because
 * other programs may use the other one. */
static bool find_authorization(const struct mk_request *request, mk_str *out)
{
    mk_str name, value;
    *out = mk_str_of(NULL, 0);
    for (size_t i = 0; mk_request_header_at(request, i, &name, &value); i++) {
        if (!mk_str_eq_nocase(name, MK_STR("Authorization")))
            continue;
        if (out->p)
            return false;
        *out = value;
    }
    return true;
}

static enum mk_verdict check_location(struct auth_check *v)
{
    mk_str value, text;
    bool digest = v->place->type == AUTH_TYPE_DIGEST;
    if (!find_authorization(v->request, &value))
        return respond_error(v, 400);
    mk_str scheme = auth_scheme_split(value, &text);
    if (!v->queue || !text.p || !mk_str_eq_nocase(scheme, digest ? MK_STR("Digest") : MK_STR("Basic")))
        return respond_401(v, false);
    v->counted = auth_attempts_key(v->shared, mk_request_client_addr(v->request), v->place->attempts,
                                   (uint32_t)(v->place->attempt_ms / 1000));
    return digest ? check_digest(v, text) : check_basic(v, text);
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct auth_vhost *site = host_data;
    struct auth_check v = {.request = request,
                           .response = response,
                           .shared = site->setup->shared,
                           .now = mk_request_time(request)};
    unsigned status = auth_locations_find(site, request, &v.place);
    if (status == 403)
        mk_request_log(request, MK_LOG_WARN,
                       "auth: ambiguous path, which another [AUTH] may also cover: 403");
    if (status)
        return respond_error(&v, status);
    if (!v.place || v.place->type == AUTH_TYPE_NONE)
        return MK_NEXT;
    if (auth_location_allows_addr(v.place, mk_request_client_addr(request))) {
        mk_request_explain(request, "auth", "%.*s requires no password from this address",
                           MK_STR_ARG(v.place->location));
        return MK_NEXT;
    }
    struct mk_worker *worker = mk_request_worker(request);
    v.queue = worker ? mk_worker_data(worker, &MK_PLUGIN_OF(auth)) : NULL;
    mk_request_explain(request, "auth", "%.*s requires a password (%s, %.*s)", MK_STR_ARG(v.place->location),
                       v.place->type == AUTH_TYPE_DIGEST ? "Digest" : "Basic",
                       MK_STR_ARG(v.place->users->path));
    return has_cached_grant(&v) ? grant_access(&v, mk_request_user(request)) : check_location(&v);
}

static int worker_start(struct mk_worker *worker, void *data)
{
    const struct auth_config *setup = data;
    struct auth_verify_queue *queue = auth_verify_queue_new(worker, setup->shared);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(auth), queue);
    return queue ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    auth_verify_queue_free(mk_worker_data(worker, &MK_PLUGIN_OF(auth)));
    mk_worker_set_data(worker, &MK_PLUGIN_OF(auth), NULL);
}

static const struct mk_conf_table *const sections[] = {&auth_table, NULL};
static const struct mk_command *const verbs[] = {&auth_passwd, NULL};

MK_PLUGIN(auth) = {
    MK_PLUGIN_HEAD,
    .name = "auth",
    .version = "1.0",
    .help = "Authenticates users with a password: Basic and Digest.",
    .priority = MK_PRIORITY_AUTH,
    .sections = sections,
    .commands = verbs,
    .load = auth_locations_load,
    .host = auth_locations_bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = on_request,
};
