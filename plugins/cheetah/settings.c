/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <grp.h>

enum { OWNER = 0600, GROUP_WRITES = 0020, WIDEST = 0660 };

/* ---- Values ---- */

static bool parse_listen(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    *(bool *)field = true;
    if (mk_str_eq_nocase(value, MK_STR("SERVER")))
        return true;
    if (!mk_str_eq_nocase(value, MK_STR("STDIN")))
        return false;
    mk_conf_ctx_error(ctx, value, "a shell on the terminal of the server itself is no longer supported");
    mk_conf_ctx_hint(ctx, "write `Listen SERVER`, and run `monkey shell` in any terminal");
    return false;
}

static bool show_listen(const void *field, size_t i, struct mk_buf *out)
{
    (void)field;
    if (i == 0)
        mk_buf_add(out, MK_STR("SERVER"));
    return i == 0;
}

static bool parse_socket_path(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    mk_str path = mk_conf_ctx_path(ctx, value);
    if (!path.p)
        return true; /* reported */
    if (mk_str_ends(value, MK_STR("/"))) {
        mk_conf_ctx_error(ctx, value, "`%.*s` is a folder: expected the path of a socket", MK_STR_ARG(value));
        return false;
    }
    if (path.len > CHEETAH_PATH_MAX) {
        mk_conf_ctx_error(ctx, value, "the path of a socket has at most %d bytes, but this one has %zu: %s",
                          CHEETAH_PATH_MAX, path.len, path.p);
        return false;
    }
    *(mk_str *)field = path;
    return true;
}

static bool show_socket_path(const void *field, size_t i, struct mk_buf *out)
{
    if (i == 0)
        mk_buf_add(out, *(const mk_str *)field);
    return i == 0;
}

static bool parse_group(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    struct cheetah_group *group = field;
    char name[256];
    struct mk_buf text = mk_buf_fixed(name, sizeof name - 1);
    mk_buf_add(&text, value);
    name[text.len] = '\0';
    const struct group *found = text.failed ? NULL : getgrnam(name);
    if (!found) {
        mk_conf_ctx_error(ctx, value, "there is no group `%.*s`", MK_STR_ARG(value));
        return false;
    }
    *group = (struct cheetah_group){.name = value, .gid = found->gr_gid};
    return true;
}

static bool show_group(const void *field, size_t i, struct mk_buf *out)
{
    const struct cheetah_group *group = field;
    if (i > 0 || !group->name.p)
        return false;
    mk_buf_add(out, group->name);
    return true;
}

static bool parse_octal(mk_str value, unsigned *mode)
{
    *mode = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.p[i] < '0' || value.p[i] > '7')
            return false;
        *mode = *mode * 8 + (unsigned)(value.p[i] - '0');
    }
    return value.len == 3 || value.len == 4;
}

static bool parse_mode(const struct mk_conf_ctx *ctx, mk_str value, void *field)
{
    unsigned mode;
    if (!parse_octal(value, &mode))
        return false;
    if (mode & ~(unsigned)WIDEST)
        mk_conf_ctx_error(ctx, value,
                          "mode `%.*s` is too permissive: users of the shell control the server, so at most "
                          "0660 is allowed",
                          MK_STR_ARG(value));
    else if ((mode & OWNER) != OWNER)
        mk_conf_ctx_error(ctx, value, "with `%.*s` not even the owner has access: expected 0600 or 0660",
                          MK_STR_ARG(value));
    else if (mode == 0640)
        mk_conf_ctx_warn(ctx, value, "with %.*s the group cannot connect, which needs write permission",
                         MK_STR_ARG(value));
    *(unsigned *)field = mode;
    return true;
}

static bool show_mode(const void *field, size_t i, struct mk_buf *out)
{
    unsigned mode = *(const unsigned *)field;
    if (i > 0 || mode == 0)
        return false;
    mk_buf_addf(out, "%04o", mode);
    return true;
}

/* ---- The section ---- */

static const struct mk_conf_key keys[] = {
    {.name = "Listen",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct cheetah_settings, is_server),
     .default_value = "SERVER",
     .syntax = "`SERVER`, and the path in `Socket`",
     .parse = parse_listen,
     .show = show_listen,
     .help = MK_HELP("`SERVER`: on a unix socket. (`STDIN` of Monkey 1.x is no longer supported.)")},
    {.name = "Socket",
     .type = MK_CONF_CUSTOM,
     .flags = MK_CONF_WRITES,
     MK_CONF_AT(struct cheetah_settings, path),
     .default_value = CHEETAH_SOCKET,
     .syntax = "the path of a socket",
     .parse = parse_socket_path,
     .show = show_socket_path,
     .help = MK_HELP("The socket that `monkey shell` connects to.")},
    {.name = "Group",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct cheetah_settings, group),
     .syntax = "the name of a group",
     .parse = parse_group,
     .show = show_group,
     .help = MK_HELP("Group of the socket, whose members can use the shell, too.")},
    {.name = "Mode",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct cheetah_settings, mode),
     .syntax = "0600 or 0660",
     .parse = parse_mode,
     .show = show_mode,
     .help = MK_HELP("Mode of the socket, at most 0660. Default: 0660 with a `Group`, else 0600.")},
    {.name = "IdleTimeout",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct cheetah_settings, idle_ms),
     .default_value = "10m",
     .min = 1,
     .zero_word = "off",
     .help = MK_HELP("Idle time after which a session ends.")},
    {.name = "RequestTimeout",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct cheetah_settings, request_ms),
     .default_value = "30s",
     .min = 1,
     .help = MK_HELP("Maximum time in which an HTTP request on the socket must arrive.")},
    {.name = "MaxSessions",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct cheetah_settings, sessions),
     .default_value = "8",
     .min = 1,
     .max = CHEETAH_SESSION_SLOTS_MAX,
     .help = MK_HELP("Maximum concurrent sessions of all workers together.")},
};

const struct mk_conf_table cheetah_table = {
    .section = "CHEETAH",
    .keys = keys,
    .n = MK_LEN(keys),
    .help = MK_HELP("Unix socket for `monkey shell`."),
    .size = sizeof(struct cheetah_settings),
    .scope = MK_CONF_SERVER,
};

int cheetah_settings_read(struct mk_config *config, struct cheetah_settings *out, const void **section)
{
    struct cheetah_settings *s = mk_config_settings(config, &cheetah_table);
    if (!s)
        return -ENOMEM;
    *section = s;
    *out = *s;
    if (!out->path.p || !out->sessions)
        return -EINVAL; /* reported */
    if (!out->mode)
        out->mode = out->group.name.p ? WIDEST : OWNER;
    if (out->group.name.p && !(out->mode & GROUP_WRITES))
        mk_config_warn(config, s, "Group", "the Mode %04o excludes the group", out->mode);
    s->mode = out->mode; /* so that `monkey -T` prints the actual mode */
    return 0;
}
