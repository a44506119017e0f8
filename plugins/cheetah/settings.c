/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <errno.h>
#include <grp.h>

enum { OWNER = 0600, GROUP_WRITES = 0020, WIDEST = 0660, IDLE_MS = 600000, SESSIONS = 8 };

/* ---- Values ---- */

static bool parse_listen(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    *(bool *)field = true;
    if (mk_str_eq_nocase(value, MK_STR("SERVER")))
        return true;
    if (!mk_str_eq_nocase(value, MK_STR("STDIN")))
        return false;
    mk_conf_spot_error(spot, value, "a shell on the terminal of the server itself is not supported any more");
    mk_conf_spot_hint(spot, "write `Listen SERVER`, and use `monkey shell` on any terminal");
    return false;
}

static bool show_listen(const void *field, size_t i, struct mk_buf *out)
{
    (void)field;
    if (i == 0)
        mk_buf_add(out, MK_STR("SERVER"));
    return i == 0;
}

static bool parse_socket(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    mk_str path = mk_conf_spot_path(spot, value);
    if (!path.p)
        return true; /* reported */
    if (mk_str_ends(value, MK_STR("/"))) {
        mk_conf_spot_error(spot, value, "`%.*s` is a folder: expected the path of a socket",
                           MK_STR_ARG(value));
        return false;
    }
    if (path.len > SHELL_PATH_MAX) {
        mk_conf_spot_error(spot, value, "the path of a socket has at most %d bytes, this one has %zu: %s",
                           SHELL_PATH_MAX, path.len, path.p);
        return false;
    }
    *(mk_str *)field = path;
    return true;
}

static bool show_socket(const void *field, size_t i, struct mk_buf *out)
{
    if (i == 0)
        mk_buf_add(out, *(const mk_str *)field);
    return i == 0;
}

static bool parse_group(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    struct shell_group *group = field;
    char name[256];
    struct mk_buf text = mk_buf_fixed(name, sizeof name - 1);
    mk_buf_add(&text, value);
    name[text.len] = '\0';
    const struct group *found = text.failed ? NULL : getgrnam(name);
    if (!found) {
        mk_conf_spot_error(spot, value, "there is no group `%.*s`", MK_STR_ARG(value));
        return false;
    }
    *group = (struct shell_group){.name = value, .gid = found->gr_gid};
    return true;
}

static bool show_group(const void *field, size_t i, struct mk_buf *out)
{
    const struct shell_group *group = field;
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

static bool parse_mode(const struct mk_conf_spot *spot, mk_str value, void *field)
{
    unsigned mode;
    if (!parse_octal(value, &mode))
        return false;
    if (mode & ~(unsigned)WIDEST)
        mk_conf_spot_error(
            spot, value,
            "`%.*s` is too wide: who uses the shell rules the server, so at most 0660 is allowed",
            MK_STR_ARG(value));
    else if ((mode & OWNER) != OWNER)
        mk_conf_spot_error(spot, value, "with `%.*s` not even the owner could use it: expected 0600 or 0660",
                           MK_STR_ARG(value));
    else if (mode == 0640)
        mk_conf_spot_warn(spot, value, "who connects to a socket writes to it: the group cannot with %.*s",
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
     MK_CONF_AT(struct shell_settings, is_server),
     .def = "SERVER",
     .form = "`SERVER`",
     .parse = parse_listen,
     .show = show_listen,
     .help = "`SERVER`: on a unix socket. (Monkey's `STDIN` is not supported any more.)"},
    {.name = "Socket",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct shell_settings, path),
     .def = SHELL_SOCKET,
     .form = "the path of a socket",
     .parse = parse_socket,
     .show = show_socket,
     .help = "The socket that `monkey shell` connects to."},
    {.name = "Group",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct shell_settings, group),
     .form = "the name of a group",
     .parse = parse_group,
     .show = show_group,
     .help = "The group of the socket: its members may use the shell, too."},
    {.name = "Mode",
     .type = MK_CONF_CUSTOM,
     MK_CONF_AT(struct shell_settings, mode),
     .form = "0600 or 0660",
     .parse = parse_mode,
     .show = show_mode,
     .help = "The mode of the socket, at most 0660. Without it: 0660 with a `Group`, else 0600."},
    {.name = "IdleTimeout",
     .type = MK_CONF_TIME,
     MK_CONF_AT(struct shell_settings, idle_ms),
     .def = "10m",
     .min = 1,
     .zero = "off",
     .help = "A session ends when nothing was asked for so long."},
    {.name = "MaxSessions",
     .type = MK_CONF_NUM,
     MK_CONF_AT(struct shell_settings, sessions),
     .def = "8",
     .min = 1,
     .max = SHELL_SEATS,
     .help = "How many sessions there may be at once, in all workers together."},
};

const struct mk_conf_table shell_table = {
    .section = "CHEETAH",
    .keys = keys,
    .n = sizeof keys / sizeof keys[0],
    .help = "The shell: a command line on a unix socket, for `monkey shell`.",
    .size = sizeof(struct shell_settings),
    .scope = MK_CONF_SERVER,
};

static const struct shell_settings defaults = {
    .is_server = true, .path = MK_STR_INIT(SHELL_SOCKET), .idle_ms = IDLE_MS, .sessions = SESSIONS};

int shell_settings_read(struct mk_config *config, struct shell_settings *out, const void **section)
{
    struct shell_settings *written = mk_config_section(config, &shell_table, NULL);
    *section = written;
    *out = written ? *written : defaults;
    if (!out->path.p || !out->sessions)
        return -EINVAL; /* reported */
    if (!out->mode)
        out->mode = out->group.name.p ? WIDEST : OWNER;
    if (out->group.name.p && !(out->mode & GROUP_WRITES))
        mk_config_warn(config, written, "Group", "the Mode %04o keeps the group out", out->mode);
    if (written)
        written->mode = out->mode; /* as it is printed */
    return 0;
}
