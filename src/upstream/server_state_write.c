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
#include "upstream/server_state.h"

static void append_server(struct mk_buf *out, const struct mk_upstream_server *s)
{
    static const char *const modes[] = {"", " drain", " drain=move", " removed"};
    enum mk_server_mode mode = mk_health_mode(s);
    unsigned weight = mk_health_full_weight(s), discovered = mk_added_server_listed_weight(s);
    unsigned written = discovered ? discovered : s->written;
    bool is_added = !discovered && (s->is_saved || s->is_spare);
    if (!s->name.p || mode >= MK_LEN(modes) || ((is_added || discovered) && mode == MK_SERVER_REMOVED) ||
        (!is_added && mode == MK_SERVER_ENABLED && weight == written))
        return;
    mk_buf_addf(out, "%.*s%s%s", MK_STR_ARG(s->name),
                is_added     ? " added"
                : discovered ? " discovered"
                             : "",
                is_added && s->backup ? " backup" : "");
    if (is_added || weight != written)
        mk_buf_addf(out, " weight=%u", weight);
    mk_buf_addf(out, "%s\n", modes[mode]);
}

void mk_server_state_format(const struct mk_upstream *u, struct mk_buf *out)
{
    mk_buf_add(out, MK_STR("# Written by `monkey shell`, and read after the configuration.\n"));
    for (unsigned i = 0; i < u->n; i++)
        append_server(out, &u->servers[i]);
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
