/* SPDX-License-Identifier: Apache-2.0 */
/* Violates the plugin interface in the way that the query names. */
#include <errno.h>
#include <limits.h>
#include <monkey/plugin.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t pull_too_much(void *ctx, char *buffer, size_t cap)
{
    (void)ctx, (void)buffer;
    return (ssize_t)cap + 1;
}

static ssize_t pull_error(void *ctx, char *buffer, size_t cap)
{
    (void)ctx, (void)buffer, (void)cap;
    return -EIO;
}

static ssize_t pull_never(void *ctx, char *buffer, size_t cap)
{
    (void)ctx, (void)buffer, (void)cap;
    return -EAGAIN;
}

static enum mk_verdict handle(struct mk_request *request, struct mk_response *response, void *data)
{
    static const struct mk_body_source_ops too_much = {.read = pull_too_much}, error = {.read = pull_error},
                                           never = {.read = pull_never};
    mk_str how = mk_request_query(request);
    (void)data;
    if (mk_str_eq(how, MK_STR("crash")))
        raise(SIGSEGV);
    else if (mk_str_eq(how, MK_STR("exit")))
        _Exit(3);
    else if (mk_str_eq(how, MK_STR("overflow")))
        for (volatile int largest = INT_MAX; largest > 0;)
            largest = largest + 1;
    else if (mk_str_eq(how, MK_STR("spin")))
        for (volatile bool on = true; on;)
            continue;
    else if (mk_str_eq(how, MK_STR("sleep")))
        sleep(3);
    else if (mk_str_eq(how, MK_STR("too-much")))
        mk_response_set_body_source(response, &too_much, NULL, MK_LENGTH_UNKNOWN);
    else if (mk_str_eq(how, MK_STR("error")))
        mk_response_set_body_source(response, &error, NULL, 10);
    else if (mk_str_eq(how, MK_STR("never")))
        mk_response_set_body_source(response, &never, NULL, 10);
    else if (mk_str_eq(how, MK_STR("resume")))
        for (int i = 0; i < 1000; i++)
            mk_request_resume(request);
    else if (mk_str_eq(how, MK_STR("fields")))
        for (int i = 0; i < 100000; i++)
            mk_response_add_header(response, MK_STR("X-Many"), MK_STR("0123456789"));
    else if (mk_str_eq(how, MK_STR("own")) &&
             mk_response_add_header(response, MK_STR("Content-Length"), MK_STR("9")) != -EINVAL)
        return MK_ERROR;
    else if (mk_str_eq(how, MK_STR("split")) &&
             mk_response_add_header(response, MK_STR("X"), MK_STR("a\r\nB: c")) != -EINVAL)
        return MK_ERROR;
    else if (mk_str_eq(how, MK_STR("status")) && mk_response_set_status(response, 99) != -EINVAL)
        return MK_ERROR;
    else if (mk_str_eq(how, MK_STR("wait")))
        return MK_WAIT;
    return MK_DONE;
}

static void wait_forever(void *ctx)
{
    (void)ctx;
    for (;;)
        pause();
}

static const char *const phases[] = {"nowhere", "start", "stop", "thread", NULL};

struct settings {
    unsigned hangs;
};

static const struct mk_conf_key keys[] = {
    {.name = "Hangs",
     .type = MK_CONF_ENUM,
     MK_CONF_AT(struct settings, hangs),
     .choices = phases,
     .default_value = "nowhere",
     .help = "Where workers never return from."},
};

static const struct mk_conf_table table = {
    .section = "MISUSE",
    .keys = keys,
    .n = 1,
    .help = "How to misbehave.",
    .size = sizeof(struct settings),
};

static int load(struct mk_config *config, void **data)
{
    *data = mk_config_settings(config, &table);
    return *data ? 0 : -1;
}

static bool hangs(const void *data, const char *where)
{
    return strcmp(phases[((const struct settings *)data)->hangs], where) == 0;
}

static int worker_start(struct mk_worker *worker, void *data)
{
    if (hangs(data, "start"))
        wait_forever(NULL);
    return hangs(data, "thread") ? mk_worker_offload(worker, wait_forever, NULL, NULL) : 0;
}

static void worker_stop(struct mk_worker *worker, void *data)
{
    (void)worker;
    if (hangs(data, "stop"))
        wait_forever(NULL);
}

static const struct mk_handler handler = {.name = "misbehave", .handle = handle};

MK_PLUGIN(misuse) = {
    MK_PLUGIN_HEAD,
    .name = "misuse",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .load = load,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
};
