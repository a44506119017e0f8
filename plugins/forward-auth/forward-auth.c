/* SPDX-License-Identifier: Apache-2.0 */
/* Asks another service whether a request is allowed, before a handler gets the request. Every failure rejects
 * the request. */
#include "query.h"
#include "subrequest.h"

#include <errno.h>

MK_PLUGIN_DECLARE(forward_auth);

static enum mk_verdict respond_error(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    if (status == 503)
        (void)mk_response_add_default(response, MK_STR("Retry-After"), MK_STR("1"));
    return MK_ERROR;
}

/* Removes headers that only a service may set, on all paths of the host: a backend trusts them. */
static bool remove_identity_headers(const struct forward_auth_vhost *site, struct mk_request *request)
{
    for (size_t i = 0; i < site->n_identity; i++)
        if (mk_request_remove_header(request, site->identity[i]))
            return false;
    return true;
}

/* ---- Waiting ---- */

static const char waiters;

/* A rewritten request is checked for each of its paths, but asks once for each location: the service decides
 * about the URL that the client requested. */
static struct forward_auth_waiter *find_waiter(const struct mk_request *request,
                                               const struct forward_auth_location *place)
{
    struct forward_auth_waiter *w = mk_request_attached(request, &waiters);
    while (w && w->place != place)
        w = w->before;
    return w;
}

static void on_request_end(void *waiter)
{
    forward_auth_waiter_leave(waiter);
}

/* Returns NULL if out of memory. */
static struct forward_auth_waiter *ask_service(struct forward_auth_worker *worker, struct mk_request *request,
                                               const struct forward_auth_location *place)
{
    struct forward_auth_waiter *w = mk_request_alloc(request, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct forward_auth_waiter){
        .request = request, .place = place, .before = mk_request_attached(request, &waiters)};
    if (mk_request_attach(request, &waiters, w, on_request_end))
        return NULL;
    mk_request_cancel_on_disconnect(request);
    return forward_auth_query_ask(worker, w) ? w : NULL;
}

/* ---- The answer ---- */

static int add_field(const struct forward_auth_location *place, const struct forward_auth_field *f,
                     struct mk_request *request, struct mk_response *response)
{
    if (!f->is_for_request)
        return mk_response_add_header(response, f->name, f->value);
    bool names_user = place->user_header.p && mk_str_eq_nocase(place->user_header, f->name);
    int e = mk_request_add_header(request, f->name, f->value);
    return e || !names_user || !f->value.len ? e : mk_request_set_user(request, f->value);
}

/* Returns 0 or an error, after which the request must be rejected. */
static int add_fields(const struct forward_auth_waiter *w, struct mk_response *response)
{
    int e = 0;
    for (size_t i = 0; !e && i < w->answer->n; i++)
        e = add_field(w->place, &w->answer->fields[i], w->request, response);
    return e;
}

static enum mk_verdict redirect(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return mk_response_set_body_nocopy(response, MK_STR("")) ? MK_ERROR : MK_DONE;
}

/* Redirects to LoginURL, with the escaped URL of the request. */
static enum mk_verdict redirect_to_login(const struct forward_auth_waiter *w, struct mk_response *response)
{
    mk_str url = forward_auth_original_url(w->request), login = w->place->login_url;
    size_t size = login.len + 3 * url.len;
    char *p = mk_request_alloc(w->request, size);
    struct mk_buf out = mk_buf_fixed(p, size);
    if (!url.p || !p)
        return respond_error(response, 503);
    mk_buf_add(&out, login);
    mk_url_escape_component(&out, url);
    if (out.failed || mk_response_set_header(response, MK_STR("Location"), mk_buf_str(&out)))
        return respond_error(response, 503);
    (void)mk_response_remove_header(response, MK_STR("WWW-Authenticate"));
    return redirect(response, 302);
}

static bool is_login_redirect(const struct forward_auth_waiter *w)
{
    enum mk_method method = mk_request_method(w->request);
    return w->answer->status == 401 && w->place->login_url.p &&
           (method == MK_METHOD_GET || method == MK_METHOD_HEAD);
}

static enum mk_verdict apply_answer(const struct forward_auth_waiter *w, struct mk_response *response)
{
    unsigned status = w->answer->status;
    int e = add_fields(w, response);
    if (e) {
        mk_request_log(w->request, MK_LOG_ERROR, "forward-auth: cannot use the answer of %.*s: %s: %d",
                       MK_STR_ARG(w->place->url),
                       e == -ENOMEM ? "out of memory" : "invalid or too many headers",
                       e == -ENOMEM ? 503 : 502);
        return respond_error(response, e == -ENOMEM ? 503 : 502);
    }
    if (status == 200)
        return MK_NEXT;
    if (is_login_redirect(w))
        return redirect_to_login(w, response);
    return status < 400 ? redirect(response, status) : respond_error(response, status);
}

/* ---- The hook ---- */

static enum mk_verdict check_location(struct mk_request *request, struct mk_response *response,
                                      const struct forward_auth_location *place)
{
    struct mk_worker *worker = mk_request_worker(request);
    struct forward_auth_worker *own = worker ? mk_worker_data(worker, &MK_PLUGIN_OF(forward_auth)) : NULL;
    struct forward_auth_waiter *w = find_waiter(request, place);
    if (!own)
        return respond_error(response, 503);
    if (!w) {
        mk_request_explain(request, "auth", "%.*s requires the permission of %.*s",
                           MK_STR_ARG(place->location), MK_STR_ARG(place->url));
        w = ask_service(own, request, place);
    } else if (w->asks_alone && !w->query && !w->answer && !forward_auth_query_ask(own, w)) {
        return respond_error(response, 503);
    }
    if (w && w->query)
        return MK_WAIT;
    return w && w->answer ? apply_answer(w, response) : respond_error(response, 503);
}

static enum mk_verdict on_request(struct mk_request *request, struct mk_response *response, void *host_data)
{
    const struct forward_auth_vhost *site = host_data;
    const struct forward_auth_location *place;
    if (!remove_identity_headers(site, request))
        return respond_error(response, 503);
    unsigned status = forward_auth_locations_find(site, request, &place);
    if (status == 403)
        mk_request_log(request, MK_LOG_WARN,
                       "forward-auth: ambiguous path, which another [FORWARD_AUTH] may also cover: 403");
    if (status)
        return respond_error(response, status);
    if (!place || !place->upstream)
        return MK_NEXT;
    return check_location(request, response, place);
}

/* ---- The plugin ---- */

static int load(struct mk_config *config, void **data)
{
    *data = mk_config_alloc(config, sizeof(unsigned)); /* number of the last section */
    return *data ? 0 : -ENOMEM;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    struct forward_auth_worker *own = forward_auth_worker_new(worker);
    (void)data;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(forward_auth), own);
    return own ? 0 : -ENOMEM;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    forward_auth_worker_free(mk_worker_data(worker, &MK_PLUGIN_OF(forward_auth)));
    mk_worker_set_data(worker, &MK_PLUGIN_OF(forward_auth), NULL);
}

static const struct mk_conf_table *const sections[] = {&forward_auth_table, NULL};
static const char *const needs[] = {"upstream", NULL};

MK_PLUGIN(forward_auth) = {
    MK_PLUGIN_HEAD,
    .name = "forward-auth",
    .version = "1.0",
    .help = "Asks another service whether a request is allowed: Authelia, oauth2-proxy, your own.",
    .priority = MK_PRIORITY_AUTH,
    .sections = sections,
    .needs = needs,
    .load = load,
    .host = forward_auth_locations_bind_vhost,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = on_request,
};
