/* SPDX-License-Identifier: Apache-2.0 */
/* Requests sandbox exceptions for its workers, and reports the results of operations: `GET /WORD?TEXT`
 * returns 0 or the error. */
#include <errno.h>
#include <fcntl.h>
#include <monkey/plugin.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct settings {
    mk_str write, read;
    bool names, trust;
};

static const struct mk_conf_key keys[] = {
    {.name = "Read", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, read)},
    {.name = "Write", .type = MK_CONF_TEXT, MK_CONF_AT(struct settings, write)},
    {.name = "Names", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, names), .default_value = "off"},
    {.name = "Trust", .type = MK_CONF_BOOL, MK_CONF_AT(struct settings, trust), .default_value = "off"},
};

static const struct mk_conf_table table = {.section = "SANDBOX_EXCEPTIONS",
                                           .keys = keys,
                                           .n = 4,
                                           .size = sizeof(struct settings),
                                           .scope = MK_CONF_SERVER};

static int load(struct mk_config *c, void **data)
{
    const struct settings *g = *data = mk_config_settings(c, &table);
    if (!g)
        return -ENOMEM;
    if (g->read.p)
        mk_config_allow_path(c, mk_config_path(c, g, g->read));
    if (g->write.p)
        mk_config_allow_writing(c, mk_config_path(c, g, g->write));
    for (int i = 0; i < 2; i++) { /* the second call changes nothing */
        if (g->names)
            mk_config_allow_resolver(c);
        if (g->trust)
            mk_config_allow_trust_store(c);
    }
    return 0;
}

static int try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600), e = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return e;
}

static int try_operation(mk_str operation, const char *text)
{
    struct addrinfo *found = NULL;
    char other[1000];
    if (mk_str_eq(operation, MK_STR("/create")))
        return try_open(text, O_RDWR | O_CREAT);
    if (mk_str_eq(operation, MK_STR("/read")))
        return try_open(text, O_RDONLY);
    if (mk_str_eq(operation, MK_STR("/mkdir")))
        return mkdir(text, 0700) < 0 ? errno : 0;
    if (mk_str_eq(operation, MK_STR("/remove")))
        return remove(text) < 0 ? errno : 0;
    if (mk_str_eq(operation, MK_STR("/rename"))) {
        (void)snprintf(other, sizeof other, "%s.new", text);
        return rename(text, other) < 0 ? errno : 0;
    }
    int e = getaddrinfo(text, NULL, NULL, &found);
    if (!e)
        freeaddrinfo(found);
    return e;
}

static enum mk_verdict respond(struct mk_request *request, struct mk_response *response, void *data)
{
    char text[1000], buf[20];
    struct mk_buf out = mk_buf_fixed(buf, sizeof buf);
    (void)data;
    (void)snprintf(text, sizeof text, "%.*s", MK_STR_ARG(mk_request_query(request)));
    mk_buf_addf(&out, "%d", try_operation(mk_request_path(request), text));
    return mk_response_set_body(response, mk_buf_str(&out)) ? MK_ERROR : MK_DONE;
}

static const struct mk_handler handler = {.name = "sandbox-exceptions", .handle = respond};

MK_PLUGIN(sandbox_exceptions) = {
    MK_PLUGIN_HEAD,
    .name = "sandbox-exceptions",
    .sections = (const struct mk_conf_table *const[]){&table, NULL},
    .handlers = (const struct mk_handler *const[]){&handler, NULL},
    .load = load,
};
