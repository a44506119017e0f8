/* SPDX-License-Identifier: Apache-2.0 */
/* Services in the configuration: where they answer. */
#include <errno.h>

#include "service/home.h"
#include "service/run.h"
#include "service/table.h"

/* A service in one configuration. */
struct site {
    const struct duda_service *service;
    bool named; /* in some [ROUTES] */
};

/* Where it answers. */
struct mount {
    const struct site *site;
    mk_str prefix; /* "/shop" of "/shop/..."; may be empty */
};

int duda_service_load(const struct duda_service *service, struct mk_config *config, void **data)
{
    if (service->abi != DUDA_ABI || service->size > sizeof *service) {
        mk_config_error(config, NULL, NULL,
                        "the service `%s` was built for another version of Duda: rebuild it", service->name);
        return -EINVAL;
    }
    struct site *site = mk_config_alloc(config, sizeof *site);
    if (!site)
        return -ENOMEM;
    site->service = service;
    *data = site;
    return 0;
}

/* The pattern "/shop/..." without its end. */
static mk_str prefix_of(mk_str pattern)
{
    while (pattern.len && (pattern.p[pattern.len - 1] == '*' || pattern.p[pattern.len - 1] == '/'))
        pattern.len--;
    return pattern.len && pattern.p[0] == '/' ? pattern : MK_STR("");
}

bool duda_service_bind(const struct duda_service *service, const struct mk_conf_spot *spot, mk_str words,
                       void **data)
{
    struct site *site = mk_config_data(mk_conf_spot_config(spot), service->plugin);
    struct mount *mount = mk_conf_spot_alloc(spot, sizeof *mount);
    if (words.len || !mount || !site)
        return false;
    mount->site = site;
    mount->prefix = prefix_of(mk_conf_spot_key(spot));
    site->named = true;
    *data = mount;
    return true;
}

static bool is_named(const struct mk_host *host, const struct duda_service *service)
{
    mk_str pattern, handler;
    for (size_t i = 0; mk_host_route_at(host, i, &pattern, &handler); i++)
        if (mk_str_eq_nocase(mk_str_word(&handler), mk_str_from_c(service->name)))
            return true;
    return false;
}

int duda_service_host(struct mk_config *config, struct mk_host *host, void *data, void **host_data)
{
    struct site *site = data;
    *host_data = site;
    if (site->named || is_named(host, site->service))
        return 0;
    struct mount *mount = mk_config_alloc(config, sizeof *mount);
    if (!mount)
        return -ENOMEM;
    mount->site = site;
    mount->prefix = MK_STR("");
    mk_config_add_first_route(config, MK_STR("/*"), site->service->handler, mount);
    return 0;
}

/* ---- Requests ---- */

static enum mk_verdict answer_options(struct mk_response *response, const struct duda_route *routes,
                                      mk_str path, bool asked)
{
    char room[256];
    struct mk_buf allow = mk_buf_fixed(room, sizeof room);
    duda_table_allow(routes, path, &allow);
    if (!allow.failed)
        (void)mk_response_add(response, MK_STR("Allow"), mk_buf_str(&allow));
    (void)mk_response_set_status(response, asked ? 204 : 405);
    return asked ? MK_DONE : MK_REFUSE;
}

static struct duda *begin(struct mk_request *request, struct mk_response *response,
                          const struct duda_found *found, mk_str path)
{
    struct duda *d = mk_request_alloc(request, sizeof *d);
    if (!d)
        return NULL;
    *d = (struct duda){.request = request,
                       .response = response,
                       .home = duda_home(mk_request_worker(request)),
                       .route = found->route,
                       .path = path,
                       .n_params = found->n_params};
    memcpy(d->params, found->params, found->n_params * sizeof d->params[0]);
    mk_request_set_data(request, d);
    for (size_t i = 0; i < d->n_params; i++)
        d->params[i].value = duda_copy(d, d->params[i].value);
    return duda_run_begin(d) ? NULL : d;
}

static enum mk_verdict enter(struct mk_request *request, struct mk_response *response,
                             const struct mount *mount)
{
    const struct duda_route *routes = mount->site->service->routes;
    mk_str path = mk_request_path(request), method = mk_request_method_text(request);
    struct duda_found found;
    path = mk_str_skip(path, mount->prefix.len);
    if (path.len == 0)
        path = MK_STR("/");
    duda_table_find(routes, method, path, &found);
    if (!found.route)
        return found.others ? answer_options(response, routes, path, mk_str_eq(method, MK_STR("OPTIONS")))
                            : MK_NEXT;
    struct duda *d = begin(request, response, &found, path);
    if (d)
        return duda_run(d);
    (void)mk_response_set_status(response, 503);
    return MK_REFUSE;
}

enum mk_verdict duda_service_handle(struct mk_request *request, struct mk_response *response, void *data)
{
    struct duda *d = mk_request_data(request);
    return d ? duda_run(d) : enter(request, response, data);
}
