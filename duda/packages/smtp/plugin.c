/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin: [SMTP] sections. */
#include <duda/config.h>
#include <duda/request.h>
#include <errno.h>
#include <monkey/plugin.h>
#include <monkey/text.h>
#include <unistd.h>

#include "common/package.h"
#include "session.h"

#define AT(member) MK_CONF_AT(struct duda_smtp, member)

enum { NAME_MAX_LEN = 255 };

static const struct mk_conf_key keys[] = {
    PACKAGE_NAME_KEY,
    {.name = "Server",
     .type = MK_CONF_TEXT,
     AT(server),
     .max = 1024,
     .help = "Address of the mail server: HOST:PORT, unix:/path or the Name of an [UPSTREAM] for TLS."},
    {.name = "EhloName",
     .type = MK_CONF_TEXT,
     AT(hello),
     .max = NAME_MAX_LEN,
     .help = "Host name for EHLO. Default: the name of the machine."},
    {.name = "User",
     .type = MK_CONF_TEXT,
     AT(user),
     .max = 255,
     .help = "User name for AUTH PLAIN, with PasswordSource."},
    {.name = "PasswordSource",
     .type = MK_CONF_CUSTOM,
     AT(password),
     .parse = duda_secret,
     .syntax = DUDA_SECRET_SYNTAX,
     .help = "Source of the password for AUTH PLAIN."},
    {.name = "Timeout",
     .type = MK_CONF_TIME,
     AT(timeout_ms),
     .default_value = "1m",
     .min = 50,
     .max = 3600000,
     .help = "Timeout for a connection, and for each reply."},
    {.name = "MaxMessageSize",
     .type = MK_CONF_SIZE,
     AT(message_max),
     .default_value = "16M",
     .min = 1024,
     .max = (uint64_t)1 << 28,
     .help = "Maximum size of a message on the wire."},
};

static bool is_valid_host_name(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!mk_char_is_alpha(s.p[i]) && !mk_char_is_digit(s.p[i]) && !strchr(".-[]:", s.p[i]))
            return false;
    return s.len > 0;
}

static bool init_ehlo_name(struct mk_config *config, struct duda_smtp *s)
{
    char *buf = mk_config_alloc(config, NAME_MAX_LEN + 1);
    if (!buf)
        return false;
    bool is_known = gethostname(buf, NAME_MAX_LEN) == 0 && is_valid_host_name(mk_str_from_c(buf));
    s->hello = is_known ? mk_str_from_c(buf) : MK_STR("localhost");
    return true;
}

/* Returns whether the server is on a loopback address. A host name may begin like one: 127.example.org. */
static bool is_loopback_server(mk_str server)
{
    for (size_t i = 0; i < server.len; i++)
        if (!mk_char_is_digit(server.p[i]) && server.p[i] != '.' && server.p[i] != ':')
            return false;
    return mk_str_starts(server, MK_STR("127."));
}

/* Returns whether the server is on this machine. In this case, passwords do not cross a network. */
static bool is_local_server(mk_str server)
{
    return mk_str_starts(server, MK_STR("unix:")) || is_loopback_server(server) ||
           mk_str_starts(server, MK_STR("[::1]")) || mk_str_starts(server, MK_STR("localhost:")) ||
           mk_str_eq(server, MK_STR("localhost"));
}

static bool check_smtp_section(struct mk_config *config, const struct package_sections *before,
                               void *settings)
{
    static const struct mk_upstream_defaults defaults = {.port = 25};
    struct duda_smtp *s = settings;
    (void)before;
    if (!s->hello.len && !init_ehlo_name(config, s))
        return false;
    if (!is_valid_host_name(s->hello))
        mk_config_error(config, s, "EhloName", "expected a host name");
    s->upstream = mk_upstream_open(config, s, "Server", s->server, &defaults);
    if (!s->user.len != !s->password.len)
        mk_config_error(config, s, s->user.len ? "User" : "PasswordSource",
                        "set either both of User and PasswordSource or neither");
    else if (s->user.len && s->upstream && !mk_upstream_is_tls(s->upstream) && !is_local_server(s->server))
        mk_config_error(config, s, "User",
                        "a password requires an [UPSTREAM] with TLS, or a server on this machine");
    return s->upstream != NULL;
}

PACKAGE_TYPE(smtp, "SMTP", struct duda_smtp, struct duda_smtp, "A mail server for Duda services.",
             .location = "Server", .max = DUDA_SMTP_SERVERS_MAX, .check_section = check_smtp_section);

struct duda_smtp *duda_smtp_find(struct duda_ctx *d, const char *name)
{
    return package_find_instance(&kind, d, name);
}

struct duda_smtp *duda_smtp_of(struct mk_worker *worker, const char *name)
{
    return package_instance_of(&kind, worker, name);
}

PACKAGE_PLUGIN(smtp, "SMTP client for Duda services.", PACKAGE_HAS_TYPE,
               .needs = PACKAGE_NEEDS("upstream", "duda"));
