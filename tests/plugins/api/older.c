/* SPDX-License-Identifier: Apache-2.0 */
/* Built when struct mk_plugin ended before on_done: the server must not read past its end. The plugin counts
 * requests in worker and host data, for which the server must identify the plugin by its own address. */
#include <monkey/plugin.h>
#include <stdlib.h>

MK_PLUGIN_DECLARE(older);

static int host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    (void)h, (void)data;
    *host_data = mk_config_alloc(config, 1);
    return *host_data ? 0 : -1;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_worker_set_data(worker, &MK_PLUGIN_OF(older), mk_mem_zalloc(1, sizeof(unsigned)));
    return 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)data;
    mk_mem_free(mk_worker_data(worker, &MK_PLUGIN_OF(older)));
}

static enum mk_verdict count(struct mk_request *request, struct mk_response *response, void *host_data)
{
    unsigned *n = mk_worker_data(mk_request_worker(request), &MK_PLUGIN_OF(older));
    char buffer[40];
    struct mk_buf text = mk_buf_fixed(buffer, sizeof buffer);
    bool known = mk_vhost_data(mk_request_vhost(request), &MK_PLUGIN_OF(older)) == host_data;
    mk_buf_addf(&text, "%u %s", n ? ++*n : 0u, known ? "known" : "unknown");
    return mk_response_add_header(response, MK_STR("Older"), mk_buf_str(&text)) ? MK_ERROR : MK_NEXT;
}

static void on_done(const struct mk_access_record *record, void *host_data)
{
    (void)record, (void)host_data;
    abort();
}

MK_PLUGIN(older) = {
    .abi = MK_ABI,
    .size = offsetof(struct mk_plugin, on_done),
    .name = "older",
    .host = host,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .on_request = count,
    .on_done = on_done,
};
