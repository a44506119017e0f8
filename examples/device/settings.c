/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the device: GET /api/settings returns them as JSON, and PUT replaces them. */
#include "device.h"

#include <errno.h>
#include <monkey/json_value.h>
#include <pthread.h>

enum { NAME_MAX_LEN = 32, INTERVAL_MAX = 3600 };

/* Handlers of several workers may run at the same time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char name[NAME_MAX_LEN + 1] = "pump-3";
static int64_t interval = 10; /* seconds between two measurements */

static enum mk_verdict fail(struct mk_response *response, unsigned status)
{
    mk_response_set_status(response, status);
    return MK_ERROR;
}

static enum mk_verdict send_settings(struct mk_response *response)
{
    char buf[512];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    struct mk_json_writer w = mk_json_writer_to(&out);
    pthread_mutex_lock(&lock);
    mk_json_begin_object(&w);
    mk_json_cstr(mk_json_key(&w, "name"), name);
    mk_json_int(mk_json_key(&w, "interval"), interval);
    mk_json_end_object(&w);
    pthread_mutex_unlock(&lock);
    if (out.failed)
        return MK_ERROR;
    mk_response_add_header(response, MK_STR("Content-Type"), MK_STR("application/json"));
    mk_response_set_body(response, mk_buf_str(&out));
    return MK_DONE;
}

static enum mk_verdict show(struct mk_request *request, struct mk_response *response, void *data)
{
    (void)data;
    return auth_check(request, response) ? send_settings(response) : MK_ERROR;
}

/* Called when the request arrives, and again each time more of its body has arrived. */
static enum mk_verdict replace(struct mk_request *request, struct mk_response *response, void *data)
{
    const struct mk_json_value *settings;
    int64_t seconds;
    (void)data;
    if (!auth_check(request, response))
        return MK_ERROR;
    int err = mk_request_json(request, NULL, &settings, NULL);
    if (err == -EAGAIN)
        return MK_WAIT;
    if (err)
        return fail(response, mk_json_status(err));
    mk_str text = mk_json_as_string(mk_json_get(settings, "name"));
    if (!text.len || text.len > NAME_MAX_LEN || mk_str_find(text, '\0') != MK_STR_NONE ||
        !mk_json_as_int(mk_json_get(settings, "interval"), &seconds) || seconds < 1 || seconds > INTERVAL_MAX)
        return fail(response, 422);
    pthread_mutex_lock(&lock);
    memcpy(name, text.p, text.len + 1);
    interval = seconds;
    pthread_mutex_unlock(&lock);
    return send_settings(response);
}

int settings_add(struct mk_server *s)
{
    return mk_server_add_route(s, "GET /api/settings", show, NULL) ||
           mk_server_add_route(s, "PUT /api/settings", replace, NULL);
}
