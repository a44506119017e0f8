/* SPDX-License-Identifier: Apache-2.0 */
/* The reason of a response: the log messages of its request. The plugin runs in the process of the test, which
 * waits for one response at a time. Method and target distinguish its request from others, such as open streams. */
#include "dev/request_messages.h"
#include "test_type.h"

static struct {
    mk_str method, target;
    struct mk_buf reason;
    bool is_error_page;
} current;

static int configure_host(struct mk_config *config, struct mk_vhost *h, void *data, void **host_data)
{
    (void)config, (void)h, (void)data;
    *host_data = &current;
    return 0;
}

static bool on_log(struct mk_request *request, enum mk_log_level level, mk_str message, void *data)
{
    (void)data;
    return dev_request_messages_add(request, level, message);
}

static void on_response(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    if (!mk_str_eq(mk_request_target(request), current.target) ||
        !mk_str_eq(mk_request_method_text(request), current.method))
        return;
    current.is_error_page = mk_response_is_error_page(response);
    mk_buf_clear(&current.reason);
    mk_buf_add(&current.reason, mk_str_trim(dev_request_messages_get(request)));
}

void tester_reason_begin(const char *method, const char *target)
{
    current.method = mk_str_from_c(method);
    current.target = mk_str_from_c(target);
    current.is_error_page = false;
    mk_buf_free(&current.reason);
    current.reason = mk_buf_growing(TESTER_BODY_MAX);
}

void tester_reason_end(struct duda_test *t, struct duda_test_response *response)
{
    response->reason = tester_keep(t, current.reason.len ? mk_buf_str(&current.reason) : MK_STR(""));
    current.target = MK_STR_NULL;
    mk_buf_free(&current.reason);
    t->last = *response;
    t->is_last_explained = false;
    t->is_last_error_page = current.is_error_page;
}

const struct mk_plugin tester_reason_plugin = {
    MK_PLUGIN_HEAD,         .name = "duda-test",        .priority = MK_PRIORITY_ADDRESS,
    .host = configure_host, .on_response = on_response, .on_log = on_log,
};
