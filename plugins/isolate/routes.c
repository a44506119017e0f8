/* SPDX-License-Identifier: Apache-2.0 */
#include "routes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "group_type.h"

enum { REPORT_MAX = 16 * 1024 * 1024, PART_SIZE = 16 * 1024, FIELD_MAX = 2048 };

int isolate_routes_create_file(void)
{
    int fd = memfd_create("isolate-routes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, REPORT_MAX) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
    int e = -errno;
    close(fd);
    return e;
}

/* Reads the text at the beginning of the file, before the first NUL byte. */
static void read_report(int fd, struct mk_buf *out)
{
    char part[PART_SIZE];
    ssize_t n;
    while ((n = pread(fd, part, sizeof part, (off_t)out->len)) > 0) {
        size_t len = strnlen(part, (size_t)n);
        mk_buf_add(out, mk_str_of(part, len));
        if (out->failed || len < (size_t)n)
            return;
    }
}

static bool is_field(mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 127)
            return false;
    return s.p && s.len <= FIELD_MAX;
}

static struct isolate_route *parse_line(struct mk_config *config, mk_str line)
{
    mk_str where = line, host = mk_str_cut(&where, '\t'), route = mk_str_cut(&where, '\t');
    if (!is_field(host) || !is_field(route) || !route.len || !is_field(where))
        return NULL;
    struct isolate_route *r = mk_config_alloc(config, sizeof *r);
    if (r)
        *r = (struct isolate_route){.host = mk_config_copy(config, host),
                                    .route = mk_config_copy(config, route),
                                    .where = mk_config_copy(config, where)};
    return r;
}

struct isolate_route *isolate_routes_read(struct mk_config *config, int fd)
{
    struct mk_buf text = mk_buf_growing(REPORT_MAX);
    struct isolate_route *first = NULL, **end = &first;
    read_report(fd, &text);
    mk_str rest = mk_buf_str(&text);
    while (rest.len) {
        *end = parse_line(config, mk_str_cut(&rest, '\n'));
        end = *end ? &(*end)->next : end;
    }
    mk_buf_free(&text);
    return first;
}

bool isolate_routes_declare(struct mk_config *config, const struct isolate_group *g)
{
    bool ok = true;
    for (const struct isolate_route *r = g->routes; r; r = r->next) {
        mk_str conflict;
        int e = mk_config_declare_route(config, r->host, r->route, r->where, &conflict);
        ok = ok && !e;
        if (e != -EEXIST)
            continue;
        mk_config_error(config, g->settings, "Service", "%.*s", MK_STR_ARG(conflict));
        mk_config_hint(
            config,
            "give each service separate paths: `/shop/* isolate %s` in [ROUTES], or a prefix in its table",
            g->name);
    }
    return ok;
}
