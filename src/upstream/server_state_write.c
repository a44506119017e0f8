/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/state_dir.h"
#include "upstream/added_server.h"
#include "upstream/health.h"
#include "upstream/saved_servers.h"

static const char *const modes[] = {"", " drain", " drain=move", " removed"};

/* False: the server has no change, or its change is an entry of mk_saved_servers. */
static bool append_server(struct mk_buf *out, const struct mk_upstream_server *s)
{
    enum mk_server_mode mode = mk_health_mode(s);
    unsigned weight = mk_health_full_weight(s);
    bool is_added = s->is_saved || s->is_spare;
    if (!s->name.p || mode >= MK_LEN(modes) || (is_added && mode == MK_SERVER_REMOVED) ||
        mk_added_server_listed_weight(s) || (!is_added && mode == MK_SERVER_ENABLED && weight == s->written))
        return false;
    mk_buf_addf(out, "%.*s%s%s", MK_STR_ARG(s->name), is_added ? " added" : "",
                is_added && s->backup ? " backup" : "");
    if (is_added || weight != s->written)
        mk_buf_addf(out, " weight=%u", weight);
    mk_buf_addf(out, "%s\n", modes[mode]);
    return true;
}

static void append_saved(struct mk_buf *out, const struct mk_saved_server *s)
{
    mk_buf_addf(out, "%.*s discovered", (int)strnlen(s->name, sizeof s->name), s->name);
    if (s->weight)
        mk_buf_addf(out, " weight=%u", s->weight);
    mk_buf_addf(out, "%s\n", s->mode < MK_LEN(modes) ? modes[s->mode] : "");
}

void mk_server_state_save(const struct mk_upstream *u, struct mk_buf *out)
{
    unsigned n = 0;
    mk_buf_add(out, MK_STR("# Written by `monkey shell`, and read after the configuration.\n"));
    for (unsigned i = 0; i < u->n; i++)
        n += append_server(out, &u->servers[i]);
    if (!u->saved)
        return;
    mk_saved_servers_update(u, n);
    for (const struct mk_saved_server *s = NULL; (s = mk_saved_servers_next(u->saved, s ? s->serial : 0));)
        append_saved(out, s);
}

mk_err mk_server_state_write(mk_str path, mk_str text)
{
    char folder[PATH_MAX];
    size_t slash = mk_str_find_last(path, '/');
    if (slash == MK_STR_NONE || slash + 1 >= sizeof folder)
        return -ENAMETOOLONG;
    memcpy(folder, path.p, slash + 1);
    folder[slash + 1] = '\0';
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    mk_err e = mk_state_dir_write(dir, path.p + slash + 1, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, text);
    mk_fd_close(&dir);
    return e;
}
