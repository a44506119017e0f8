/* SPDX-License-Identifier: Apache-2.0 */
/* Requires user and password where the configuration says so, before a handler sees the request. */
#include "credentials.h"
#include "digest.h"
#include "jobs.h"
#include "passwd.h"
#include "verify.h"

#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>

MK_PLUGIN_DECLARE(auth);

/* One request at one place. */
struct visit {
    struct mk_request *request;
    struct mk_response *response;
    const struct auth_place *place;
    struct auth_shared *shared;
    struct auth_desk *desk; /* NULL outside a worker, as in `monkey explain` */
    struct auth_counted counted;
    int64_t now;
};

static enum mk_verdict refuse(struct visit *v, unsigned status)
{
    mk_response_set_status(v->response, status);
    return MK_ERROR;
}

static enum mk_verdict refuse_for(struct visit *v, unsigned status, uint32_t seconds)
{
    char room[16];
    struct mk_buf b = mk_buf_fixed(room, sizeof room);
    mk_buf_add_num(&b, seconds);
    mk_response_set_header(v->response, MK_STR("Retry-After"), mk_buf_str(&b));
    return refuse(v, status);
}

static enum mk_verdict challenge(struct visit *v, bool stale)
{
    int e = v->place->type == AUTH_TYPE_DIGEST
                ? auth_digest_challenge(v->shared, v->place, v->response, v->now, stale)
                : mk_response_add_header_nocopy(v->response, MK_STR("WWW-Authenticate"), v->place->challenge);
    return refuse(v, e ? 503 : 401);
}

/* The client chose the name: escape it, so that quotes in it cannot be mistaken for ours. */
static void log_user(struct visit *v, const char *what, mk_str user)
{
    char room[256];
    struct mk_buf b = mk_buf_fixed(room, sizeof room);
    mk_log_escape(&b, user);
    mk_request_log(v->request, MK_LOG_WARN, "auth: %s \"%.*s\" at %.*s", what, MK_STR_ARG(mk_buf_str(&b)),
                   MK_STR_ARG(v->place->location));
}

static enum mk_verdict refuse_wrong(struct visit *v, mk_str user)
{
    log_user(v, "wrong user or password:", user);
    uint32_t seconds = auth_attempts_blocked(v->shared, &v->counted, v->now);
    if (seconds)
        mk_request_log(v->request, MK_LOG_WARN, "auth: %u wrong ones from this address: refused for %u s",
                       v->place->attempts, seconds);
    return challenge(v, false);
}

/* A place for which the request has already authenticated. */
struct grant {
    const struct auth_place *place;
    const struct grant *before;
};

static const char grants;

static bool take_same_password(const struct auth_place *a, const struct auth_place *b)
{
    return a->users == b->users && a->type == b->type && mk_str_eq(a->title, b->title);
}

/* A rewritten request is judged for each of its paths. Its password was checked for the first one: Digest
 * credentials cannot be checked twice, because the check uses up their count. */
static bool has_grant(const struct visit *v)
{
    const struct grant *g = mk_request_attached(v->request, &grants);
    while (g && !take_same_password(g->place, v->place))
        g = g->before;
    return g;
}

static bool add_grant(struct visit *v, mk_str user)
{
    struct grant *g = mk_request_alloc(v->request, sizeof *g);
    if (!g || mk_request_set_user(v->request, user))
        return false;
    *g = (struct grant){.place = v->place, .before = mk_request_attached(v->request, &grants)};
    return mk_request_attach(v->request, &grants, g, NULL) == 0;
}

static enum mk_verdict let_in(struct visit *v, mk_str user)
{
    if (!auth_place_lets_in(v->place, user)) {
        log_user(v, "this user may not enter:", user);
        return refuse(v, 403);
    }
    return has_grant(v) || add_grant(v, user) ? MK_NEXT : refuse(v, 503);
}

static void on_request_end(void *wait)
{
    auth_wait_leave(wait);
}

static struct auth_wait *wait_of(struct visit *v)
{
    struct auth_wait *wait = mk_request_attached(v->request, &MK_PLUGIN_OF(auth));
    if (wait)
        return wait;
    wait = mk_request_alloc(v->request, sizeof *wait);
    if (!wait)
        return NULL;
    *wait = (struct auth_wait){.request = v->request};
    return mk_request_attach(v->request, &MK_PLUGIN_OF(auth), wait, on_request_end) ? NULL : wait;
}

static enum mk_verdict apply_answer(struct visit *v, mk_str user, enum auth_answer answer)
{
    if (answer == AUTH_RIGHT)
        return let_in(v, user);
    return answer == AUTH_WRONG ? refuse_wrong(v, user) : refuse_for(v, 503, 1);
}

static enum mk_verdict join(struct visit *v, const struct auth_question *q, struct auth_job *job)
{
    struct auth_wait *wait = wait_of(v);
    if (!wait)
        return refuse(v, 503);
    auth_wait_join(wait, job, q);
    return MK_WAIT;
}

/* Hands an expensive hash to a helper thread, as it would block the loop. */
static enum mk_verdict ask_desk(struct visit *v, struct auth_question *q)
{
    struct auth_wait *wait = mk_request_attached(v->request, &MK_PLUGIN_OF(auth));
    if (wait && wait->job)
        return MK_WAIT;
    if (wait && wait->place == v->place && wait->answer != AUTH_UNKNOWN)
        return apply_answer(v, q->user, wait->answer);
    auth_desk_mac(v->desk, q);
    struct auth_job *same = auth_desk_find(v->desk, q);
    if (same)
        return join(v, q, same);
    uint32_t seconds = auth_attempts_blocked(v->shared, &v->counted, v->now);
    if (seconds)
        return refuse_for(v, 429, seconds);
    if (auth_desk_remembers(v->desk, q))
        return let_in(v, q->user);
    if (!(wait = wait_of(v)))
        return refuse(v, 503);
    if ((seconds = auth_attempts_charge(v->shared, &v->counted, v->now)))
        return refuse_for(v, 429, seconds);
    if (!auth_desk_ask(v->desk, q, wait))
        return refuse_for(v, 503, 1);
    return wait->job ? MK_WAIT : apply_answer(v, q->user, wait->answer);
}

static enum mk_verdict ask_now(struct visit *v, const struct auth_question *q)
{
    uint32_t seconds = auth_attempts_charge(v->shared, &v->counted, v->now);
    if (seconds)
        return refuse_for(v, 429, seconds);
    bool matches = q->known && auth_verify_quick(q->known->hash, q->password);
    if (!matches || !q->exists)
        return refuse_wrong(v, q->user);
    auth_attempts_give_back(v->shared, &v->counted, v->now);
    return let_in(v, q->user);
}

static enum mk_verdict check_basic(struct visit *v, mk_str text)
{
    char room[AUTH_BASIC_ROOM];
    struct auth_basic basic;
    enum mk_verdict verdict;
    if (!auth_basic_parse(text, room, &basic)) {
        verdict =
            challenge(v, false); /* it can match no user: long, not base64, or with control characters */
    } else {
        struct auth_question q = {
            .place = v->place, .user = basic.user, .password = basic.password, .counted = v->counted};
        q.known = auth_users_find(v->place->users, q.user);
        q.exists = q.known != NULL;
        if (!q.exists)
            q.known = auth_users_stand_in(v->place->users, v->shared->secret, q.user);
        verdict = !q.known || auth_hash_is_quick(q.known->hash) ? ask_now(v, &q) : ask_desk(v, &q);
    }
    explicit_bzero(room, sizeof room);
    return verdict;
}

static enum mk_verdict check_digest(struct visit *v, mk_str text)
{
    mk_str user = {NULL, 0};
    uint32_t seconds = auth_attempts_blocked(v->shared, &v->counted, v->now);
    if (seconds)
        return refuse_for(v, 429, seconds);
    switch (auth_digest_check(v->shared, v->place, v->request, text, v->now, &user)) {
    case AUTH_DIGEST_RIGHT:
        return let_in(v, user);
    case AUTH_DIGEST_WRONG:
        auth_attempts_charge(v->shared, &v->counted, v->now);
        return refuse_wrong(v, user);
    case AUTH_DIGEST_STALE:
        return challenge(v, true);
    case AUTH_DIGEST_FOREIGN:
        return challenge(v, false);
    case AUTH_DIGEST_ELSEWHERE:
        break;
    }
    return refuse(v, 400);
}

/* The value of Authorization; absent if there is none. False: there are two, and others may take the other
 * one. */
static bool find_field(const struct mk_request *request, mk_str *out)
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

static enum mk_verdict check(struct visit *v)
{
    mk_str value, text;
    bool digest = v->place->type == AUTH_TYPE_DIGEST;
    if (!find_field(v->request, &value))
        return refuse(v, 400);
    mk_str scheme = auth_scheme_cut(value, &text);
    if (!v->desk || !text.p || !mk_str_eq_nocase(scheme, digest ? MK_STR("Digest") : MK_STR("Basic")))
        return challenge(v, false);
    v->counted = auth_attempts_of(v->shared, mk_request_client_addr(v->request), v->place->attempts,
                                  (uint32_t)(v->place->attempt_ms / 1000));
    return digest ? check_digest(v, text) : check_basic(v, text);
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct auth_site *site = host_data;
    struct visit v = {.request = request,
                      .response = response,
                      .shared = site->setup->shared,
                      .now = mk_request_time(request)};
    unsigned status = auth_places_find(site, request, &v.place);
    if (status == 403)
        mk_request_log(request, MK_LOG_WARN, "auth: the path may be read as one of another [AUTH], too: 403");
    if (status)
        return refuse(&v, status);
    if (!v.place || v.place->type == AUTH_TYPE_NONE)
        return MK_NEXT;
    if (auth_place_knows(v.place, mk_request_client_addr(request))) {
        mk_request_explain(request, "auth", "%.*s asks this address for no password",
                           MK_STR_ARG(v.place->location));
        return MK_NEXT;
    }
    struct mk_worker *worker = mk_request_worker(request);
    v.desk = worker ? mk_worker_data(worker, &MK_PLUGIN_OF(auth)) : NULL;
    mk_request_explain(request, "auth", "%.*s asks for a password (%s, %.*s)", MK_STR_ARG(v.place->location),
                       v.place->type == AUTH_TYPE_DIGEST ? "Digest" : "Basic",
                       MK_STR_ARG(v.place->users->path));
    return has_grant(&v) ? let_in(&v, mk_request_user(request)) : check(&v);
}

static int start(struct mk_worker *worker, void *data)
{
    const struct auth_setup *setup = data;
    struct auth_desk *desk = auth_desk_open(worker, setup->shared);
    mk_worker_set_data(worker, &MK_PLUGIN_OF(auth), desk);
    return desk ? 0 : -ENOMEM;
}

static void stop(struct mk_worker *worker, void *data)
{
    (void)data;
    auth_desk_close(mk_worker_data(worker, &MK_PLUGIN_OF(auth)));
    mk_worker_set_data(worker, &MK_PLUGIN_OF(auth), NULL);
}

static const struct mk_conf_table *const sections[] = {&auth_table, NULL};
static const struct mk_command *const verbs[] = {&auth_passwd, NULL};

MK_PLUGIN(auth) = {
    MK_PLUGIN_HEAD,
    .name = "auth",
    .version = "1.0",
    .help = "Asks for user and password: Basic and Digest.",
    .order = MK_PRIORITY_AUTH,
    .sections = sections,
    .verbs = verbs,
    .load = auth_places_load,
    .host = auth_places_bind,
    .worker_start = start,
    .worker_stop = stop,
    .on_request = on_request,
};
